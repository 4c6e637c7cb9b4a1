"""What `up` notices while it follows: the end of the log, /dev/shm filling up, workers other than planned."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from trainlaunch.errors import LaunchError
from trainlaunch.plan.instrumentation import WORKERS
from trainlaunch.plan.launch_plan import LaunchPlan, SharedMemory
from trainlaunch.plan.plan_label import Planned
from trainlaunch.plan.shared_memory import PAGE
from trainlaunch.run.base.backend import Chunk, ContainerInfo, Peak, Say, ShmReading
from trainlaunch.run.base.run_evidence import TAIL_BYTES, PreflightLine
from trainlaunch.run.base.shm_reading import highest, peak_of, read_from_health
from trainlaunch.units import counted, human_size

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.log_facts import LogFacts
    from trainlaunch.diagnose.base.scan import Scanner
    from trainlaunch.job.spec import JobSpec
    from trainlaunch.rules.sources.deciding_workers import WorkersDecision

HEAD_BYTES = 8 * 1024
UNHEALTHY = "unhealthy: "  # how the health command begins what it has against a run
WATCHED_BYTES = 8 * 1024
HEALTH_SECONDS = 5.0  # between two looks at the engine's health status
SILENT_SECONDS = 60.0  # of log and of a full /dev/shm, after which a job counts as stuck
COUNTS_BEFORE_FEWER_IS_SAID = 25  # a job that ends sooner may not have reached its first epoch
_LOWERED = re.compile(r"preflight passed: (?:(?!preflight ).)*\bnum_workers (\d{1,9})\b", re.ASCII)
NOTED_STEP = 20  # a peak that has risen by less than a twentieth is noted at the end

HangWatch = Callable[[str], str]
Note = Callable[[Peak], None]


def load_symptoms() -> None:
    """Load what reads a log, which the first output needs; a target takes longer to start a container than this."""
    from trainlaunch.diagnose import new_scanner  # all symptoms; a start needs none

    new_scanner()


class Log:
    """The first and the last part of a job's output, both streams as they came."""

    def __init__(self, hangs: HangWatch, say: Say) -> None:
        self._head = b""
        self._tail = b""
        self._hangs = hangs
        self._say = say
        self._said = False
        self._scanner: Scanner | None = None
        self._last = time.monotonic()
        self._preflight = PreflightLine()

    def take(self, chunk: Chunk) -> None:
        """Keep a chunk, and say once when it shows a job that will hang without ever ending."""
        self._last = time.monotonic()
        if len(self._head) < HEAD_BYTES:
            self._head += chunk.data[: HEAD_BYTES - len(self._head)]
        self._tail = (self._tail + chunk.data)[-TAIL_BYTES:]
        self._scan(chunk.data)
        self._preflight.take(chunk.stderr, chunk.data)
        if not self._said and chunk.stderr and b"Error" in chunk.data:
            sentence = self._hangs(self._tail[-WATCHED_BYTES:].decode(errors="replace"))
            if sentence:
                self._said = True
                self._say(f"since {clock()} {sentence}")

    @property
    def preflight_spoke(self) -> bool:
        """Whether the preflight's last line has come."""
        return self._preflight.seen

    def _scan(self, data: bytes) -> None:
        if self._scanner is None:
            from trainlaunch.diagnose import new_scanner

            self._scanner = new_scanner()
        self._scanner.feed(data)

    @property
    def facts(self) -> LogFacts | None:
        """What all of it says, not only its last part; None where nothing was printed. Asked for at the end."""
        return None if self._scanner is None else self._scanner.facts()

    @property
    def silent(self) -> float:
        """Seconds since the job's last output, or since its start."""
        return time.monotonic() - self._last

    @property
    def text(self) -> str:
        """The last part."""
        return self._tail.decode(errors="replace")

    @property
    def num_workers(self) -> int | None:
        """The workers that the preflight settled on, None before its line."""
        found = _LOWERED.search(self._head.decode(errors="replace"))
        return int(found[1]) if found else None


def clock(ago: float = 0.0) -> str:
    """Return the local time of day, or that of `ago` seconds before, as a sentence names it."""
    return time.strftime("%H:%M:%S", time.localtime(time.time() - ago))


class PlannedShm(NamedTuple):
    """What a plan says of /dev/shm and the workers of one container, which readings are compared with.

    `memory` is its limit in bytes, 0 where none is in effect; `target` is the target's name. `injects`: workers are
    given to DataLoaders from inside, which says of each that is left alone why. `job` says who decides their number.
    """

    shm: SharedMemory
    ranks: int
    memory: int
    target: str
    injects: bool = False
    job: JobSpec | None = None

    def processes(self, settled: int | None) -> int:
        """Return the worker processes of all ranks; `settled` is what the preflight lowered an auto num_workers to."""
        return self.shm.alive_workers(settled) * self.ranks


def planned_shm(plan: LaunchPlan) -> PlannedShm:
    """Return what readings of a plan's containers are compared with."""
    memory = (plan.memory.limit or 0) if plan.target_record.enforces_limits else 0
    return PlannedShm(plan.shm, plan.ranks.value, memory, plan.target, WORKERS in plan.inside.parts, plan.job)


class ShmSource(Protocol):
    """Where readings of a running container come from: a Backend, or a pod's own look at itself."""

    @property
    def sample_seconds(self) -> float:
        """How long to wait between two readings."""

    def read_shm(self, container: Any) -> ShmReading | None:
        """Read /dev/shm now; None where that is not possible."""

    def checked(self, container: str) -> ContainerInfo | None:
        """Describe it, by its id, with what its health check says; None where there is nothing new."""


class ShmWatch:
    """Samples /dev/shm and the workers of a running container in a thread of its own.

    `note` is told the peak as it rises, and at the end: other verbs are to know it too. `unhealthy` is told why the
    health check found the run unhealthy, in the check's own words: one that took too long says nothing of the job.
    """

    def __init__(
        self,
        backend: ShmSource,
        plan: PlannedShm,
        log: Log,
        say: Say,
        note: Note = lambda _: None,
        unhealthy: Say = lambda _: None,
    ) -> None:
        self._unhealthy = unhealthy
        self._backend = backend
        self._plan = plan
        self.log = log
        self._say = say
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._full_said = self._stuck_said = self._more_said = self._unhealthy_said = False
        self._full_since: float | None = None
        self._counts = self._last_workers = self._noted = 0
        self._note = note
        self.seen: Peak | None = None
        self.most_workers = 0

    @property
    def peak(self) -> int | None:
        """The most bytes that were seen, None before the first reading."""
        return None if self.seen is None else self.seen.held

    def start(self, container: Any) -> None:
        """Sample what the source can read, by its `id`, until `end`."""
        self._thread = threading.Thread(target=self._sample, args=(container,), daemon=True)
        self._thread.start()

    def _sample(self, container: Any) -> None:
        since_health = 0.0
        while not self._ended.wait(self._backend.sample_seconds):
            since_health += self._backend.sample_seconds
            try:
                reading = self._backend.read_shm(container)
                if since_health >= HEALTH_SECONDS:
                    since_health = 0.0
                    self.take_health(self._backend.checked(container.id))
            except LaunchError:
                continue  # the follower says it when the engine is away
            if reading is not None and not self._ended.is_set():
                self.take(reading)

    def take_health(self, now: ContainerInfo | None) -> None:
        """Say once that the health check found the run unhealthy, in its own words."""
        if now is not None and now.health == "unhealthy" and not self._unhealthy_said:
            self._unhealthy_said = True
            self._say(f"the health check says: {now.health_output or 'unhealthy'}")
        if now is not None and now.health == "unhealthy" and now.health_output.startswith(UNHEALTHY):
            self._unhealthy(now.health_output.removeprefix(UNHEALTHY))

    def end(self, health_output: str = "") -> None:
        """Stop sampling; the health check's last line may know a higher peak."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(timeout=10)
        self.seen = highest((self.seen, peak_of(read_from_health(health_output))))
        if self.seen is not None:
            self._note(self.seen)

    def take(self, reading: ShmReading) -> None:
        """Judge one reading; each remark is made once."""
        self.seen = highest((self.seen, peak_of(reading)))
        if self.seen is not None and self.seen.held > self._noted + self._noted // NOTED_STEP:
            self._noted = self.seen.held
            self._note(self.seen)
        self._take_fill(reading)
        if reading.workers is None:
            return
        self._counts += 1
        self.most_workers = max(self.most_workers, reading.workers)
        planned = self._plan.processes(self.log.num_workers)
        # Twice the same: workers start one after another.
        if reading.workers > planned and reading.workers == self._last_workers and not self._more_said:
            self._more_said = True
            self._say(
                f"{counted(reading.workers, 'DataLoader worker')} run and {planned} were planned: /dev/shm may be "
                f"too small for them; {self._decision().take_planned()}, or state data_loader.num_workers as it is"
            )
        self._last_workers = reading.workers

    def _take_fill(self, reading: ShmReading) -> None:
        """Say that /dev/shm is full, and again when nothing has moved since: a full queue that trains on is no hang."""
        if not self._is_full(reading):
            self._full_since = None
            return
        if self._full_since is None:
            self._full_since = time.monotonic()
        if not self._full_said:
            self._full_said = True
            self._say(
                f"/dev/shm was seen full at {clock()}: {self._filled(reading)}; a worker that finds no room for its "
                f"next batch dies or hangs; {self._way_out(reading)}"
            )
        full, silent = time.monotonic() - self._full_since, self.log.silent
        if min(full, silent) >= SILENT_SECONDS and not self._stuck_said:
            self._stuck_said = True
            self._say(
                f"the job is stuck, it seems: /dev/shm has been full since {clock(full)} ({self._filled(reading)}), "
                f"and nothing was printed since {clock(silent)}; end the run, then {self._way_out(reading)}"
            )

    def _is_full(self, reading: ShmReading) -> bool:
        """Whether the next storage has no room; a healthy queue leaves room for one more a worker."""
        largest = max((each.largest for each in self._plan.shm.loaders), default=0)
        return reading.size > 0 and reading.size - reading.used < max(PAGE, largest)

    def _filled(self, reading: ShmReading) -> str:
        against = "" if self._plan.shm.unsized else f", the plan needs {human_size(self._plan.shm.need)}"
        return f"{human_size(reading.used)} of {human_size(reading.size)} used{against}"

    def _way_out(self, reading: ShmReading) -> str:
        from trainlaunch.diagnose.base.evidence import Evidence
        from trainlaunch.diagnose.base.memory_advice import larger_shm

        plan = self._plan
        planned = Planned(need=plan.shm.need, unsized=plan.shm.unsized)
        return larger_shm(
            Evidence(None, shm_size=reading.size, memory=plan.memory, target=plan.target, planned=planned)
        )

    def fewer_workers(self) -> str:
        """Return the remark that fewer workers ran than planned, `` where all ran or nothing is known."""
        planned = self._plan.processes(self.log.num_workers)
        if self._counts < COUNTS_BEFORE_FEWER_IS_SAID or self.most_workers >= planned:
            return ""
        way = self._decision().take_planned()
        if self._plan.injects:
            way = "the lines about `num_workers` above say which DataLoader was left alone, and why"
        elif not way or (self._decision().number or 0) >= self._plan.shm.most_workers:
            return ""  # the script has as many: loops too short to be seen, or another loader's turn
        seen = f"{counted(self.most_workers, 'DataLoader worker')} were seen at most and {planned} were planned"
        return f"{seen}: {way}, or state data_loader.num_workers as it is"

    def _decision(self) -> WorkersDecision:
        from trainlaunch.rules.sources.deciding_workers import UNKNOWN, deciding_workers  # which reads the script

        return UNKNOWN if self._plan.job is None else deciding_workers(self._plan.job)
