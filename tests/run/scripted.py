"""A backend whose containers end as a script says: for what `up` does around a job, without an engine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from trainlaunch.errors import TargetUnavailable
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.plan_label import Planned
from trainlaunch.run.base.backend import Chunk, ContainerInfo, Position, Say, Session, ShmReading
from trainlaunch.run.docker.client import Endpoint, unreachable

BLANK = ContainerInfo(
    id="", name="", job="", run="", attempt=1, max_attempts=1, status="running", exit_code=None, error="",
    oom_killed=False, health="", health_output="", created=0.0, started=1.0, finished=0.0, ipc_mode="private",
    shm_size=64 << 20, memory=0, pid=0, planned=Planned(),
)  # fmt: skip


SPOKE = Chunk(stderr=True, data=b"trainlaunch: preflight passed: of a script\n")


@dataclass
class End:
    """How one container goes: its output, then its code. `until` keeps it running until `stop` or `kill` is called.

    A job that `ignores` SIGTERM ends by `kill` only; `lost` makes the engine go away instead of the job, `lost_late`
    after it told the code. What is `removed_late` is described once after its end; `refused` is not made at all.
    """

    code: int = 0
    output: tuple[Chunk, ...] = ()
    until_stopped: bool = False
    ignores: bool = False
    lost: bool = False
    lost_late: bool = False
    signals: tuple[int, ...] = ()
    oom_killed: bool = False
    removed: bool = False
    removed_late: bool = False
    refused: bool = False
    health_output: str = ""
    unhealthy: str = ""
    silent: bool = False

    @property
    def printed(self) -> tuple[Chunk, ...]:
        """All that it prints: what is not `silent` begins with the preflight's line."""
        return self.output if self.silent else (SPOKE, *self.output)


@dataclass
class Scripted:
    """Gives each created container the next End; keeps what was asked of it in `calls`."""

    ends: list[End]
    planned: Planned = field(default_factory=Planned)
    sample_seconds: float = 0.01
    calls: list[str] = field(default_factory=list)
    _made: list[Scripted.Container] = field(default_factory=list)

    class Container:
        """One container and its session."""

        def __init__(self, end: End, started: ContainerInfo) -> None:
            self.end = end
            self.started = started
            self.code: int | None = None
            self.signals = end.signals
            self.over = threading.Event()
            self.told = False  # whether its end was described

        def chunks(self) -> Iterator[Chunk]:
            """Yield the scripted output, and close when the job ends."""
            yield from self.end.printed
            self.over.wait(30)

        def exit_code(self) -> int | None:
            """Return the scripted code, at once or when it is stopped."""
            if not self.end.until_stopped and self.code is None:
                self.finish(self.end.code)
            assert self.over.wait(30)
            return None if self.end.lost else self.code

        def finish(self, code: int) -> None:
            """End it."""
            self.code = code if self.code is None else self.code
            self.over.set()

        def close(self) -> None:
            """Let go."""

    def prepare(self, plan: LaunchPlan, say: Say) -> None:
        """Find nothing wrong."""

    def create(self, plan: LaunchPlan, run: str, attempt: int) -> str:
        """Make the next container."""
        self.calls.append(f"create {attempt}")
        number = len(self._made)
        if self.ends[number].refused:
            raise unreachable(Endpoint("unix:///gone", ""), "no such file")
        started = replace(BLANK, id=str(number), name=plan.name, run=run, attempt=attempt, planned=self.planned)
        self._made.append(self.Container(self.ends[number], started))
        return str(number)

    def begin(self, container: str) -> Scripted.Container:
        """Start it."""
        return self._made[int(container)]

    def resume(self, container: str) -> Scripted.Container:
        """Take it up again."""
        return self._made[int(container)]

    def stop(self, container: str) -> None:
        """End it with the scripted code, unless it ignores that."""
        self.calls.append("stop")
        made = self._made[int(container)]
        if not made.end.ignores:
            made.signals += (15,)
            made.finish(made.end.code)

    def kill(self, container: str) -> None:
        """End it with 137."""
        self.calls.append("kill")
        made = self._made[int(container)]
        made.signals += (15, 9)
        made.finish(137)

    def inspect(self, container: str) -> ContainerInfo | None:
        """Describe it; raises TargetUnavailable where the script loses the engine."""
        made = self._made[int(container)]
        if made.code is None:
            return made.started
        if made.end.lost or made.end.lost_late:
            raise unreachable(Endpoint("unix:///gone", ""), "connection reset")
        if made.end.removed or (made.end.removed_late and made.told):
            return None
        made.told = True
        end = made.end
        ended = replace(made.started, status="exited", exit_code=made.code)
        return replace(ended, oom_killed=end.oom_killed, health_output=end.health_output)

    def checked(self, container: str) -> ContainerInfo | None:
        """Describe it; a running one has the health that its End says."""
        now = self.inspect(container)
        ill = self._made[int(container)].end.unhealthy if now is not None and not now.ended else ""
        return replace(now, health="unhealthy", health_output=ill) if now is not None and ill else now

    def signals(self, container: ContainerInfo) -> tuple[int, ...]:
        """Return what was sent."""
        return self._made[int(container.id)].signals

    def expiring(self) -> tuple[ContainerInfo, ...]:
        """Return none."""
        return ()

    def runs(self, job: str | None = None, run: str | None = None) -> tuple[ContainerInfo, ...]:
        """List nothing."""
        return ()

    def listed(self, job: str | None = None) -> tuple[ContainerInfo, ...]:
        """List nothing."""
        return ()

    def secrets(self, container: ContainerInfo) -> tuple[tuple[str, str], ...]:
        """Tell none."""
        return ()

    def follow(self, container: str, position: Position) -> Session:
        """Nobody else keeps a run of it."""
        raise NotImplementedError

    def logs(self, container: str, *, follow: bool, position: Position | None = None) -> Iterator[Chunk]:
        """Yield the scripted output."""
        return iter(self._made[int(container)].end.printed)

    def wait(self, container: str) -> int | None:
        """Return the code."""
        return self._made[int(container)].code

    def remove(self, container: str) -> None:
        """Remove nothing."""

    def look(self, container: ContainerInfo) -> None:
        """Nothing to look at."""

    def read_shm(self, container: ContainerInfo) -> ShmReading | None:
        """Nothing to read."""
        return None

    def wait_page(self, container: ContainerInfo) -> None:
        """Nothing loads data."""

    def close(self) -> None:
        """Nothing is open."""


class Refusing(Scripted):
    """A backend that can't create anything."""

    def create(self, plan: LaunchPlan, run: str, attempt: int) -> str:
        """Refuse."""
        raise TargetUnavailable(unreachable(Endpoint("unix:///gone", ""), "no such file").diagnostics)
