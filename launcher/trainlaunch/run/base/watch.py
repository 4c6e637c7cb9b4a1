"""What `up` notices while it follows: the end of the log, /dev/shm filling up, workers other than planned."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from trainlaunch.errors import LaunchError
from trainlaunch.plan.instrumentation import LOOK_SECONDS, WORKERS
from trainlaunch.plan.launch_plan import LaunchPlan, SharedMemory
from trainlaunch.plan.plan_label import Planned
from trainlaunch.plan.shared_memory import PAGE
from trainlaunch.plan.shm_sum_text import need_words
from trainlaunch.run.base.backend import ContainerInfo, Peak, Say, ShmReading
from trainlaunch.run.base.clock import clock
from trainlaunch.run.base.followed_log import Log
from trainlaunch.run.base.run_evidence import advice_in_options
from trainlaunch.run.base.shm_place import way_to_enlarge
from trainlaunch.run.base.shm_reading import highest, is_stalled, peak_of, read_from_health
from trainlaunch.run.base.wait_reading import ASIDE, DataWait, HeldPage, LoaderWait, PageSource
from trainlaunch.targets import TARGETS
from trainlaunch.units import GIB, MIB, counted, human_size, round_up

if TYPE_CHECKING:
    from trainlaunch.job.spec import JobSpec
    from trainlaunch.rules.sources.deciding_workers import WorkersDecision

UNHEALTHY = "unhealthy: "  # how the health command begins what it has against a run
HEALTH_SECONDS = float(LOOK_SECONDS)  # between two looks at the engine's health status
SILENT_SECONDS = 60.0  # of log and of a full /dev/shm, after which a job counts as stuck
LONGER_THAN_USUAL = 20  # times the mean wait for a batch: what a loop that always waits long takes is no news
COUNTS_BEFORE_FEWER_IS_SAID = 25  # a job that ends sooner may not have reached its first epoch
NOTED_STEP = 20  # a peak that has risen by less than a twentieth is noted at the end

Note = Callable[[Peak], None]


class PlannedShm(NamedTuple):
    """What a plan says of /dev/shm and the workers of one container, which readings are compared with.

    `memory` is its limit in bytes, 0 where none is in effect; `target` is the target's name. `injects`: workers are
    given to DataLoaders from inside, which says of each that is left alone why. `job` says who decides their number.
    `compares`: workers that aren't as planned are said. `by_run`: a command has options of `run`, no job file.
    """

    shm: SharedMemory
    ranks: int
    memory: int
    target: str
    injects: bool = False
    job: JobSpec | None = None
    compares: bool = True
    by_run: bool = False

    def processes(self, settled: int | None) -> int:
        """Return the worker processes of all ranks; `settled` is what the preflight lowered an auto num_workers to."""
        return self.shm.alive_workers(settled) * self.ranks


def planned_shm(plan: LaunchPlan) -> PlannedShm:
    """Return what readings of a plan's containers are compared with."""
    memory = (plan.memory.limit or 0) if plan.target_record.enforces_limits else 0
    made = PlannedShm(plan.shm, plan.ranks.value, memory, plan.target, WORKERS in plan.inside.parts, plan.job)
    return made._replace(by_run=plan.by_run)


class LongWait:
    """Notices the first wait for a batch that is far longer than those before it, as a stuck worker makes it."""

    def __init__(self, plan: PlannedShm) -> None:
        self._plan = plan
        self._begun: dict[tuple[int, str, str], LoaderWait] = {}  # each loop as it was when its batches last changed
        self._said = False

    def take(self, seen: DataWait | None) -> str | None:
        """Return what is said of it, once; None before, and after."""
        for each in () if seen is None or self._said else seen.loaders:
            begun = self._begun.get((each.process, each.phase, each.at))
            if begun is None or begun.batches != each.batches:
                self._begun[each.process, each.phase, each.at] = each
                continue
            now, usual = each.waited - begun.waited, begun.waited / max(1, each.batches)
            if (
                each.phase != ASIDE
                and each.batches
                and now >= max(SILENT_SECONDS, LONGER_THAN_USUAL * usual, begun.first)
            ):
                self._said = True
                who = f"rank {each.rank}" if self._plan.ranks > 1 else "the job"
                ask = "" if self._plan.job is None else f"; `trainlaunch doctor {self._plan.job.name}` looks why"
                return f"{who} has waited {now:.0f} s for a batch at {each.at}, where {usual:.2g} s are usual{ask}"
        return None


class ShmSource(PageSource, Protocol):
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

    `note` is told the peak as it rises, and at the end: other commands are to know it too. `unhealthy` is told why the
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
        self._full_said = self._stuck_said = self._unhealthy_said = False
        self._more_said = not plan.compares
        self._full_since: float | None = None
        self._counts = self._last_workers = self._noted = 0
        self._note, self.waits = note, HeldPage(backend)
        self._long_wait = LongWait(plan)
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
                self.waits.look(container)
                if (long := self._long_wait.take(self.waits.seen)) is not None:
                    self._say(long)
                if since_health >= HEALTH_SECONDS:
                    since_health = 0.0
                    self.take_health(self._backend.checked(container.id))
            except LaunchError:
                continue  # the follower says it when the engine is away
            if reading is not None and not self._ended.is_set():
                self.take(reading)

    def take_health(self, now: ContainerInfo | None) -> None:
        """Say once that the health check found the run unhealthy, in its own words; a stall is certain at once."""
        if now is None or (now.health != "unhealthy" and not is_stalled(now.health_output)):
            return
        if not self._unhealthy_said:
            self._unhealthy_said = True
            self._say(f"the health check says: {now.health_output or 'unhealthy'}")
        if now.health_output.startswith(UNHEALTHY):
            self._unhealthy(now.health_output.removeprefix(UNHEALTHY))

    def end(self, health_output: str = "") -> None:
        """Stop sampling; the health check's last line may know a higher peak."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(timeout=10)
        self.waits.end()
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
                f"found {counted(reading.workers, 'DataLoader worker')}, planned {planned}: /dev/shm may be "
                f"too small for them; {self._way_to_planned()}set data_loader.num_workers as it is"
            )
        self._last_workers = reading.workers

    def _take_fill(self, reading: ShmReading) -> None:
        """Say that /dev/shm is full, and again when nothing has moved since: a full queue that trains on is no hang."""
        if not self._is_full(reading):
            self._full_since = None
            return
        self._full_since = self._full_since or time.monotonic()
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
        against = "" if self._plan.shm.unsized else f", {need_words(self._plan.shm)}"
        return f"{human_size(reading.used)} of {human_size(reading.size)} used{against}"

    def _way_out(self, reading: ShmReading) -> str:
        from trainlaunch.diagnose.base.evidence import Evidence
        from trainlaunch.diagnose.base.flags import as_options
        from trainlaunch.diagnose.base.memory_advice import larger_shm

        plan = self._plan
        if not TARGETS[plan.target].private_shm:
            enlarge = way_to_enlarge(round_up(max(2 * reading.size, plan.shm.need), GIB) // MIB)
            lower = advice_in_options(self._decision()).lower() if plan.by_run else self._decision().lower()
            return f"end what else uses it, {lower}, or {enlarge}"
        planned = Planned(need=plan.shm.need, unsized=plan.shm.unsized)
        evidence = Evidence(None, shm_size=reading.size, memory=plan.memory, target=plan.target, planned=planned)
        return as_options(larger_shm(evidence)) if plan.by_run else larger_shm(evidence)

    def fewer_workers(self) -> str:
        """Return the remark that fewer workers ran than planned, `` where all ran or nothing is known."""
        planned = self._plan.processes(self.log.num_workers)
        if self._counts < COUNTS_BEFORE_FEWER_IS_SAID or self.most_workers >= planned:
            return ""
        decision, way = self._decision(), self._way_to_planned()
        if not way or ((decision.number or 0) >= self._plan.shm.most_workers and not self._plan.injects):
            return ""  # the script has as many: loops too short to be seen, or another loader's turn
        seen = f"saw at most {counted(self.most_workers, 'DataLoader worker')}, planned {planned}: {way}"
        return f"{seen}set data_loader.num_workers as it is"

    def _way_to_planned(self) -> str:
        """Return what gives the script the planned workers, before an alternative; empty where it has them by rule."""
        if self._plan.injects:
            return "the lines about `num_workers` above say which DataLoader was left alone, and why, or "
        way = self._decision().take_planned()
        return f"{way}, or " if way else ""

    def _decision(self) -> WorkersDecision:
        from trainlaunch.rules.sources.deciding_workers import UNKNOWN, deciding_workers  # which reads the script

        return UNKNOWN if self._plan.job is None else deciding_workers(self._plan.job)
