"""What a target tells about a container, as evidence for a diagnosis, and whether its preflight spoke.

An ENTRYPOINT that runs nothing behind it ends with 0, and the job never ran. The preflight's line in the log is the
evidence. Where the log's beginning may be gone (rotated, emptied), nothing follows from its absence: a good run is
never turned into a failed one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.base.backend import Backend, ContainerInfo
from trainlaunch.run.base.clock import SECOND, nanoseconds
from trainlaunch.run.base.log_position import LogPart, position_of
from trainlaunch.run.base.multi_node import deciding
from trainlaunch.run.base.shm_place import way_to_have_more
from trainlaunch.run.base.shm_reading import read_from_health

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.evidence import Evidence, WorkersAdvice
    from trainlaunch.diagnose.base.log_facts import LogFacts
    from trainlaunch.job.spec import JobSpec
    from trainlaunch.plan.launch_plan import LaunchPlan
    from trainlaunch.rules.sources.deciding_workers import WorkersDecision

TAIL_BYTES = 64 * 1024


class EndNote(NamedTuple):
    """What only its follower knew of an attempt's end; `peak` is bytes of /dev/shm, None where none was seen.

    `preflight` is whether it spoke, None where that is not known. `unhealthy` is why it was stopped as unhealthy.
    """

    stopped_by: str = ""
    killed_by: str = ""
    peak: int | None = None
    preflight: bool | None = None
    unhealthy: str = ""


NOTHING_NOTED = EndNote()


def evidence_of(
    container: ContainerInfo, *, log: str, signals: tuple[int, ...] = (), note: EndNote = NOTHING_NOTED
) -> Evidence:
    """Return what the target, and the follower's `note`, tell about a container."""
    from trainlaunch.diagnose.base.evidence import Evidence  # with all symptoms, which no start needs

    return Evidence(
        exit_code=container.exit_code,
        log=log,
        oom_killed=container.oom_killed,
        error=container.error,
        private_shm=container.private_shm,
        ipc_mode=container.ipc_mode,
        shm_size=container.shm_size,
        shm_peak=note.peak,
        memory=container.memory if container.where.enforces_limits else 0,
        target=container.target,
        signals=signals,
        stopped_by=note.stopped_by,
        killed_by=note.killed_by,
        unhealthy=note.unhealthy,
        planned=container.planned,
        container=container.name,
        engine=container.engine,
        enlarge=way_to_have_more,
    )


def with_job(evidence: Evidence, job: JobSpec) -> Evidence:
    """Return evidence whose advice on workers names who decides their number in this job."""

    return replace(evidence, workers=workers_advice(job, by_run=False))


def with_plan(evidence: Evidence, plan: LaunchPlan) -> Evidence:
    """Return the same for a plan; what a command of `run` may type are its own words and options."""
    if plan.by_run:
        return replace(evidence, has_job=False, by_run=True, workers=workers_advice(plan.job, by_run=True))
    return with_job(evidence, plan.job)


def workers_advice(job: JobSpec, *, by_run: bool) -> WorkersAdvice:
    """Return what to type for another number of workers; the script is read where that is told."""
    from trainlaunch.diagnose.base.evidence import WorkersAdvice

    def decision() -> WorkersDecision:
        from trainlaunch.rules.sources.deciding_workers import deciding_workers

        return deciding_workers(job)

    if by_run:
        return WorkersAdvice(
            lambda n: advice_in_options(decision()).to_have(n), lambda: advice_in_options(decision()).lower()
        )
    return WorkersAdvice(lambda n: decision().to_have(n), lambda: decision().lower())


def advice_in_options(decision: WorkersDecision) -> WorkersAdvice:
    """Return the same for a command of `run`, by who decides its workers."""
    from trainlaunch.diagnose.base.evidence import WorkersAdvice

    name = decision.name + "=" * (decision.kind == "variable")
    if decision.kind == "unknown":
        return WorkersAdvice()
    if decision.passed:
        return WorkersAdvice(lambda n: f"write {name}{n}", lambda: f"lower {name.rstrip('= ')}")
    who = "`--workers`" if decision.kind == "plan" else decision.words
    return WorkersAdvice(lambda n: f"give `--workers {n}`", lambda: f"lower num_workers ({who})")


def without_secrets(evidence: Evidence, redact: Callable[[str], str]) -> Evidence:
    """Return evidence of which nothing that is quoted has a secret's value."""
    return replace(evidence, log=redact(evidence.log), redact=redact)


def evidence_of_run(
    backend: Backend, containers: Sequence[ContainerInfo], note: EndNote = NOTHING_NOTED
) -> Evidence | None:
    """Return what is known of the end of a run that nobody need have followed; None while nothing of it has ended.

    It is what `up` has of it: the last of the log, signals, /dev/shm's peak. Raises TargetUnavailable.
    """
    if not containers:
        return None
    ended = deciding(containers)
    if not ended.ended:
        return None
    last = read_from_health(ended.health_output)
    peaks = [each for each in (note.peak, last.peak if last else None) if each is not None]
    log, facts = read_whole_log(backend, ended)
    evidence = evidence_of(
        ended,
        log=log,
        signals=backend.signals(ended),
        note=note._replace(peak=max(peaks, default=None)),
    )
    return replace(evidence, scanned=facts)


def read_whole_log(backend: Backend, container: ContainerInfo) -> tuple[str, LogFacts]:
    """Return the last part of both streams as they came, and what all of them says. Raises TargetUnavailable."""
    from trainlaunch.diagnose import new_scanner  # all symptoms; most starts explain nothing

    tail, scanner = b"", new_scanner()
    for chunk in backend.logs(container.id, follow=False):
        tail = (tail + chunk.data)[-TAIL_BYTES:]
        scanner.feed(chunk.data)
    return tail.decode(errors="replace"), scanner.facts()


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

    `note` is what its supervisor saw.
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
