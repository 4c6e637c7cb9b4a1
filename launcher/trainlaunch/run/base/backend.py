"""What a target must be able to do so that `up`, `ps`, `status`, `logs`, `wait` and `down` work on it.

The state of a run lives in the target itself (labels), so that every machine that reaches the target sees the same
runs. Target local, which has nobody to keep it, has files: of this host and this user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.plan_label import Planned
from trainlaunch.targets import DEFAULT_TARGET, TARGETS, Target

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.container_snapshot import ContainerSnapshot
    from trainlaunch.run.base.caller_terminal import TypedKeys
    from trainlaunch.run.base.wait_reading import WaitPage

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes of a job's output as they came; `stderr` tells which stream, `node` which of several containers."""

    stderr: bool
    data: bytes
    node: int | None = None


class Position(Protocol):
    """Where one reader of a log is."""

    def query(self) -> dict[str, str | int]:
        """Return what to ask an engine for, from here on; each call is for one more reading."""

    def take(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Yield what of a reading has not been taken yet."""


@dataclass(frozen=True, slots=True)
class ContainerInfo:
    """One container of a job as the target describes it.

    `status` is created, running or exited; `exit_code` is None until it ended, and stays None where its first process
    never ran (`error` then has the engine's words). Times are seconds since the epoch, sizes bytes, 0 where unknown.
    `node` is its number where several containers run the job, `project` the Compose project that it belongs to.
    `owner` is who started it, empty where it was started by hand. `fronted`: a program of the image
    starts the preflight. `gpus` are those that it has, as `run.gpu_holds` writes them. `engine` is the program
    whose commands know it. `measures` is the job whose script it measures, empty for a job's own run.
    """

    id: str
    name: str
    job: str
    run: str
    attempt: int
    max_attempts: int
    status: str
    exit_code: int | None
    error: str
    oom_killed: bool
    health: str
    health_output: str
    created: float
    started: float
    finished: float
    ipc_mode: str
    shm_size: int
    memory: int
    pid: int
    planned: Planned
    ttl: int | None = None
    target: str = DEFAULT_TARGET
    node: int | None = None
    project: str = ""
    owner: str = ""
    fronted: bool = False
    gpus: str = ""
    engine: str = "docker"
    measures: str = ""

    def expired(self, now: float) -> bool:
        """Whether it ended longer than its ttl_after_finished ago; `now` is seconds since the epoch."""
        return self.ttl is not None and self.ended and self.finished + self.ttl <= now

    @property
    def where(self) -> Target:
        """What is so of its target."""
        return TARGETS[self.target]

    @property
    def noun(self) -> str:
        """What it is called in a sentence."""
        return self.where.noun

    @property
    def ended(self) -> bool:
        """Whether nothing of it runs any more, or ever will."""
        return self.status == "exited" or bool(self.error)

    @property
    def private_shm(self) -> bool:
        """Whether `shm_size` is in effect: with `ipc: host` or `container:X` the engine reports it and ignores it."""
        return self.ipc_mode in {"", "private", "shareable"}

    @property
    def own_shm(self) -> int:
        """Bytes of its own /dev/shm, 0 where it shares another's."""
        return self.shm_size if self.private_shm else 0


class Peak(NamedTuple):
    """The most bytes that a run was seen to hold in /dev/shm, and the DataLoader workers that ran then.

    They are those of all ranks; None where nobody counted. `largest` is the largest storage that a process had mapped,
    which a batch has at least; 0 where nobody looked.
    """

    held: int
    workers: int | None = None
    largest: int = 0


@dataclass(frozen=True, slots=True)
class ShmReading:
    """/dev/shm of a running container in bytes (size 0: unlimited), and its DataLoader workers (None: not counted).

    `peak_workers` are those that ran when `peak` was seen, None where only the reading's own are known; `largest` is a
    Peak's.
    """

    used: int
    peak: int
    size: int
    workers: int | None
    peak_workers: int | None = None
    largest: int = 0


class Session(Protocol):
    """A container that was just started, attached from its first byte."""

    def chunks(self) -> Iterator[Chunk]:
        """Yield the output until it closes."""

    def exit_code(self) -> int | None:
        """Block until the end and return the exit code; None when the target was lost."""

    def close(self) -> None:
        """Let go of it; the container goes on."""


class Backend(Protocol):
    """One target. Every method raises TargetUnavailable where the target can't be reached or refuses.

    `place` is what holds its runs, as a sentence starts with it.
    """

    place: str

    def serve(self, terminal: TypedKeys | None) -> None:
        """Let the next run be the caller's own command, in front on this terminal; None for a detached one."""

    def prepare(self, plan: LaunchPlan, say: Say) -> None:
        """Check everything that can be known before the first process, and get the image."""

    def create(self, plan: LaunchPlan, run: str, attempt: int) -> str:
        """Create the container of an attempt under plan.name and return its id; the name is taken atomically.

        Where several nodes run the job, the id stands for all of them: `begin`, `stop` and `kill` take it.
        """

    def begin(self, container: str) -> Session:
        """Attach, then start; a container that can't start is removed."""

    def resume(self, container: str) -> Session:
        """Attach to what `create` gave and `begin` started, from its first byte; it may have ended meanwhile."""

    def stop(self, container: str) -> None:
        """Send the stop signal, then SIGKILL after the container's own grace period; returns when it ended."""

    def kill(self, container: str) -> None:
        """Send SIGKILL."""

    def inspect(self, container: str) -> ContainerInfo | None:
        """Describe one container; None when it is gone."""

    def checked(self, container: str) -> ContainerInfo | None:
        """Describe one with what its health check says, which is run where nobody else does; None: nothing new."""

    def secrets(self, container: ContainerInfo) -> tuple[tuple[str, str], ...]:
        """Return the names and values of its secrets that the target still has and the log may hold."""

    def signals(self, container: ContainerInfo) -> tuple[int, ...]:
        """Return the signals that were sent to it through the target by whomever, in order."""

    def expiring(self) -> tuple[ContainerInfo, ...]:
        """Return the containers of all jobs whose ttl_after_finished may be over, newest first."""

    def runs(self, job: str | None = None, run: str | None = None) -> tuple[ContainerInfo, ...]:
        """Return all containers of one job, or of all, newest first; of one run alone where its id is given."""

    def listed(self, job: str | None = None) -> tuple[ContainerInfo, ...]:
        """Return them as far as the target tells it of all at once, however many there are.

        That is what names them, their state and exit code, and whose they are; what else is unknown is 0 or empty, and
        `created` may be whole seconds.
        """

    def follow(self, container: str, position: Position) -> Session:
        """Look at one that somebody else keeps: its output from a position of its log, and its end."""

    def logs(self, container: str, *, follow: bool, position: Position | None = None) -> Iterator[Chunk]:
        """Yield its output from a position of its log, without one from the first byte; with `follow` until it ends."""

    def wait(self, container: str) -> int | None:
        """Block until it ended and return the exit code; None when it was removed meanwhile."""

    def remove(self, container: str) -> None:
        """Remove an ended container and its anonymous volumes."""

    def read_shm(self, container: ContainerInfo) -> ShmReading | None:
        """Read /dev/shm of a running container now; None where that is not possible."""

    def wait_page(self, container: ContainerInfo) -> WaitPage | None:
        """Open the page in which a running container's processes note how long they wait for data; None without one."""

    def look(self, container: ContainerInfo) -> ContainerSnapshot | None:
        """Look at the processes of a running container now, for two seconds; None where that is not possible."""

    def close(self) -> None:
        """Close all connections; runs go on."""

    @property
    def sample_seconds(self) -> float:
        """How long to wait between two calls of read_shm: its cost decides."""
