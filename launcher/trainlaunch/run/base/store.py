"""What holds runs, as the commands about runs see it: the targets of this host, or one namespace of a cluster.

A RunStatus is what `ps`, `status` and `wait` print as JSON, the same on every target: each key is there, None where the
target can't know it (docs/run-status.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from trainlaunch.errors import TargetUnavailable
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.backend import Chunk, ContainerInfo, Say
from trainlaunch.run.base.log_position import WHOLE, LogPart
from trainlaunch.run.base.run_query import Run, RunQuery

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.case import Diagnosis
    from trainlaunch.diagnose.base.evidence import Evidence
    from trainlaunch.run.base.caller_terminal import TypedKeys
    from trainlaunch.run.base.console import Console, Event, Events, Outcome
    from trainlaunch.run.base.wait_reading import DataWait

PENDING, RUNNING, SUCCEEDED, FAILED, UNKNOWN = ("pending", "running", "succeeded", "failed", "unknown")
ENDED = (SUCCEEDED, FAILED, UNKNOWN)


class ShmStatus(NamedTuple):
    """/dev/shm of a container in bytes, `size` 0 where it has no limit; `unread` is why it could not be read."""

    used: int | None = None
    peak: int | None = None
    size: int | None = None
    need: int | None = None
    unread: str | None = None


class WorkerStatus(NamedTuple):
    """DataLoader workers that run, and that were planned."""

    running: int | None = None
    planned: int | None = None


class ContainerStatus(NamedTuple):
    """A container, pod or local process of a run. Times are seconds since the epoch.

    `node` is its number where several run the job, `machine` the cluster's machine that it is on.
    """

    name: str
    id: str
    node: int | None
    attempt: int
    machine: str | None
    state: str
    reason: str | None
    message: str | None
    exit_code: int | None
    oom_killed: bool | None
    restarts: int | None
    health: str | None
    health_output: str | None
    created: float
    started: float | None
    finished: float | None
    shm: ShmStatus
    workers: WorkerStatus
    data_wait: Mapping[str, Any] | None = None


class RunStatus(NamedTuple):
    """A run as JSON has it; from `waits` on it is what `status` and `wait` look at and `ps` does not."""

    job: str
    run: str
    name: str
    target: str
    context: str | None
    namespace: str | None
    kind: str | None
    owner: str | None
    state: str
    reason: str | None
    message: str | None
    exit_code: int | None
    attempt: int | None
    max_attempts: int | None
    created: float
    started: float | None
    finished: float | None
    containers: tuple[ContainerStatus, ...]
    waits: tuple[str, ...] | None = None
    never_ran: bool | None = None
    keeper: Mapping[str, Any] | None = None
    messages: tuple[Mapping[str, Any], ...] | None = None
    causes: tuple[Mapping[str, Any], ...] | None = None
    suggestion: str | None = None

    def document(self) -> dict[str, Any]:
        """Return it as plain values."""
        containers = [
            {**each._asdict(), "shm": each.shm._asdict(), "workers": each.workers._asdict()} for each in self.containers
        ]
        return {**self._asdict(), "containers": containers}


class RunReport(NamedTuple):
    """What `status` tells of a run: its values, and for people lines, with what a run is to be given between them.

    `evidence` is what is known of its end, None before it; `bad` that somebody should look.
    """

    status: RunStatus
    lines: tuple[str, ...]
    further: tuple[str, ...]
    causes: tuple[Diagnosis, ...]
    evidence: Evidence | None
    bad: bool


class Following(NamedTuple):
    """How a run is followed: with its output, a `part` of what there is of it, or without (None).

    `take_up` starts a supervisor for a run that has none, where that is no controller's work; an interrupt
    then leaves the run alone, or stops it.
    """

    part: LogPart | None = WHOLE
    take_up: Callable[[ContainerInfo], None] | None = None
    stop_on_interrupt: bool = False


class Starting(NamedTuple):
    """How a run is started; `typed` is the user's command line, for an error that completes it.

    `terminal` is the caller's, of a run that stands in front of it as the bare command would; `as_shell`: it has the
    caller's own environment, in front or detached. `run` is its id, `` where nobody chose one. `max_data_wait` is the
    share of its time that it may wait for data and still end with 0.
    """

    typed: str
    detach: bool = False
    share_gpus: bool = False
    replace: bool = False
    stop_on_interrupt: bool = False
    as_shell: bool = False
    terminal: TypedKeys | None = None
    run: str = ""
    max_data_wait: float | None = None


class Followed(NamedTuple):
    """What is to be said of a run that was followed: the verdict, the causes by its evidence (None: none), remarks.

    `data_wait` is what it waited for data in its `seconds`, None where that was not seen.
    `started` is its name where it was only started. `goes_on` says why it was left alone; `error` is what it was lost
    by.
    """

    exit_code: int
    evidence: Evidence | None = None
    verdict: str = ""
    remarks: tuple[str, ...] = ()
    started: str = ""
    goes_on: str = ""
    error: Exception | None = None
    data_wait: DataWait | None = None
    seconds: float = 0.0


Tell = Callable[[Followed], None]


class ClusterPlace(NamedTuple):
    """Which cluster and namespace are meant, None for the kubeconfig's current context, and for its own namespace."""

    context: str | None = None
    namespace: str | None = None


class Live(NamedTuple):
    """One container that runs: a sentence about it, whether its health check fails, and what is known of it."""

    state: str
    unhealthy: bool
    evidence: Evidence


class RunRow(NamedTuple):
    """What `ps` shows of a run in the words of its target; `shm` is a size, or what stands for one."""

    run: Run
    state: str
    exit_code: int | None
    shm: str


class RunStore(Protocol):
    """What holds runs. Each method raises TargetUnavailable where the target can't be reached or refuses.

    `options` name it again in another command. `schedules`: a
    run may wait for a machine, so what it takes is counted from there.
    """

    options: str
    schedules: bool

    @property
    def place(self) -> str:
        """Where it is, as a sentence names it."""

    @property
    def elsewhere(self) -> str:
        """Where it is, as the end of a sentence; empty for this host."""

    def runs(self) -> Sequence[Run]:
        """Return all runs, newest first."""

    def left_out(self, *, found: bool) -> Sequence[str]:
        """Return what was not looked at by `runs`, a sentence each, where that matters to who `found` something."""

    def none_found(self, asked: RunQuery, known: Sequence[Run], owner: str | None, say: Say) -> TargetUnavailable:
        """Return the error for a RUN that means none of the `known` runs."""

    def newest(self, runs: Sequence[Run]) -> Run:
        """Return the newest of some runs, which are newest first as far as a list tells."""

    def rows(self, runs: Sequence[Run]) -> Sequence[RunRow]:
        """Return what `ps` shows of runs; without those that are gone meanwhile."""

    def statuses(self, runs: Sequence[Run]) -> Sequence[RunStatus]:
        """Return runs as `ps` has them in JSON; without those that are gone meanwhile."""

    def report(self, run: Run, say: Say) -> RunReport:
        """Look at a run closely."""

    def print_log(self, run: Run, part: LogPart, attempt: int | None, show: Callable[[Chunk], None], say: Say) -> None:
        """Show a part of what the newest attempt, or another one, has printed; of several nodes with their numbers."""

    def follow(self, run: Run, console: Console, how: Following, tell: Tell) -> int:
        """Follow a run to the end of its last attempt, and return its exit code; `tell` gets what is to be said."""

    def start(self, plan: LaunchPlan, console: Console, how: Starting, tell: Tell) -> int:
        """Check, start and follow a plan's run, and return its exit code; `tell` gets what is to be said."""

    def run_apart(self, plan: LaunchPlan, console: Console, events: Events[Event], typed: str) -> Outcome:
        """Run a plan that measures to its end, or until an event stops it, and leave nothing of it."""

    def evidence(self, run: Run, say: Say) -> Evidence | None:
        """Return what is known of a run's end; None before it."""

    def live(self, run: Run, say: Say) -> Sequence[Live]:
        """Look into the containers that run, for two seconds."""

    def enter(self, runs: Sequence[Run], command: Sequence[str], term: str | None, say: Say) -> int | None:
        """Run a command, or a shell, in what runs of the first of some runs; None where nothing runs.

        `term` is the kind of the terminal, None without one.
        """

    def own_shell(self, plan: LaunchPlan, term: str | None, say: Say) -> int:
        """Run a shell plan in a container of its own like the job's, and leave nothing of it."""

    def remove(self, runs: Sequence[Run], say: Say) -> None:
        """Stop runs and remove all that they made; returns when it is gone."""

    def remove_left(self, asked: RunQuery, known: Sequence[Run], owner: str | None, say: Say) -> None:
        """Remove what runs that are gone have left of a job. Raises TargetUnavailable where there is nothing."""

    def close(self) -> None:
        """Close all connections; runs go on."""
