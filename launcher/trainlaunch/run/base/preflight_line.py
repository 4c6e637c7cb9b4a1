"""Whether the preflight spoke: an ENTRYPOINT that runs nothing behind it ends with 0, and the job never ran.

The line in the log is the evidence. Where the log's beginning may be gone (rotated, emptied), nothing follows from its
absence: a good run is never turned into a failed one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.base.backend import Backend, ContainerInfo
from trainlaunch.run.base.clock import SECOND, nanoseconds
from trainlaunch.run.base.log_position import LogPart, position_of

if TYPE_CHECKING:
    from trainlaunch.run.base.run_evidence import EndNote

PREFLIGHT = b"trainlaunch: preflight "  # so starts its last line, passed or stopped
NEVER_SPOKE = (
    "the run ended with 0 and without a word of the preflight, so the job never ran (125): what image_entrypoint starts"
    ' does not run what stands behind it, or hides its stderr; end that program with exec "$@", or write '
    "image_entrypoint: []"
)
BEGINS_SECONDS = 5.0  # a first line so soon after the start is the log's first: no log is rotated sooner
BRIEF_SECONDS = 10.0  # nor is the log of a run that was over so soon


class PreflightLine:
    """Looks for the line in pieces of both streams, as they come."""

    def __init__(self) -> None:
        self.seen = False
        self._edges = {False: b"", True: b""}

    def take(self, stderr: bool, data: bytes) -> None:
        """Look at one more piece."""
        if not self.seen:
            joined = self._edges[stderr] + data
            self.seen = PREFLIGHT in joined
            self._edges[stderr] = joined[-len(PREFLIGHT) :]


def lacks_preflight(stamped: Iterable[tuple[bool, bytes]], started: float, finished: float) -> bool:
    """Return whether a log that has its beginning lacks the line.

    `stamped` are pieces of (is stderr, time, a space, text) in the log's order; times are seconds since the epoch.
    """
    line, first = PreflightLine(), ""
    for stderr, piece in stamped:
        stamp, _, text = piece.partition(b" ")
        first = first or stamp.decode(errors="replace")
        line.take(stderr, text)
        if line.seen:
            return False
    if not first:
        return 0 <= finished - started < BRIEF_SECONDS
    try:
        return nanoseconds(first) / SECOND - started < BEGINS_SECONDS
    except ValueError:
        return False


def preflight_never_ran(backend: Backend, containers: Sequence[ContainerInfo], note: EndNote) -> bool:
    """Return whether a run that ended with 0 never came to its preflight; False too where nobody can know.

    `note` is what its keeper saw.
    """
    if not containers or any(each.exit_code != 0 for each in containers):
        return False
    if note.preflight is not None:
        return not note.preflight
    try:
        return any(each.fronted and _lacks(backend, each) for each in containers)
    except TargetUnavailable:  # as where its log driver keeps nothing
        return False


def _lacks(backend: Backend, container: ContainerInfo) -> bool:
    log = backend.logs(container.id, follow=False, position=position_of(LogPart(timestamps=True)))
    return lacks_preflight(((each.stderr, each.data) for each in log), container.started, container.finished)
