"""Who keeps a run, what was said of it meanwhile, and why it ended: the part of `status` that is of the whole run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from trainlaunch.cli.output.text_style import TextStyle
from trainlaunch.cli.runs.run_end import end_evidence
from trainlaunch.cli.runs.runs import bare_evidence, framed_diagnosis, shown
from trainlaunch.diagnose import causes_json, explain_end
from trainlaunch.run.base.wording import not_kept
from trainlaunch.run.run_lock import Keeper, keeper_of
from trainlaunch.run.run_store import RunMessage, RunStore
from trainlaunch.units import format_duration

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.diagnosis import Diagnosis
    from trainlaunch.run.base.backend import Backend, ContainerInfo

MAX_MESSAGES = 5


class KeptBy(NamedTuple):
    """What is so of a run as a whole; `off` is what it goes without, empty where nothing is.

    `unexplained` is what is known of an end that no cause explains.
    """

    keeper: Keeper | None
    limits: str
    off: str
    said: tuple[RunMessage, ...]
    causes: tuple[Diagnosis, ...]
    unexplained: str

    def lines(self, style: TextStyle) -> Iterator[str]:
        """Yield the lines of `status`."""
        if self.keeper is not None:
            yield f"keeper     {self.keeper}{self.limits}"
        elif self.off:
            yield f"keeper     none on this host, so {self.off}"
        for each in self.said[-MAX_MESSAGES:]:
            yield from (f"said       {shown(line)}" for line in str(each).splitlines())
        for cause in self.causes:
            yield framed_diagnosis(cause, style)
        if self.unexplained:
            yield self.unexplained

    def document(self) -> dict[str, Any]:
        """Return it as plain values."""
        keeper = None if self.keeper is None else self.keeper._asdict()
        return {
            "keeper": keeper,
            "said": [each._asdict() for each in self.said],
            "causes": causes_json(self.causes),
        }


def kept_by(backend: Backend, containers: tuple[ContainerInfo, ...]) -> KeptBy:
    """Return who keeps a run and why it ended. Raises TargetUnavailable."""
    first, ended = containers[0], all(each.ended for each in containers)
    kept, keeper = RunStore(first.run), keeper_of(first.run)
    plan = kept.plan()
    deadline = None if plan is None else plan.job.active_deadline
    attempts = first.max_attempts
    evidence = end_evidence(backend, containers)
    causes = () if evidence is None else explain_end(evidence)
    bare = evidence is not None and bool(evidence.exit_code) and not causes
    off = ""
    if keeper is None and not ended and first.run and (attempts > 1 or deadline is not None):
        off = f"{not_kept(attempts, deadline)}; `trainlaunch attach {first.job}` takes it over"
    return KeptBy(
        keeper,
        _limits(first, deadline),
        off,
        kept.said(),
        causes,
        f"no known cause; {bare_evidence(evidence)}" if bare and evidence is not None else "",
    )


def _limits(container: ContainerInfo, deadline: int | None) -> str:
    """Return what a keeper sees to, as the end of its line."""
    told = f", restart.max_attempts {container.max_attempts}" if container.max_attempts > 1 else ""
    return told if deadline is None else f"{told}, active_deadline {format_duration(deadline)}"
