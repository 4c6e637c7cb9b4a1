"""What a script's process reports while settings are timed, as it comes, and why nothing of a run could be timed.

Nobody has checked it: what doesn't fit is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import NotMeasured
from trainlaunch.inside.tune.task import Setting, Timed
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.units import format_duration

MAX_NUMBER = 1 << 53  # of any number: beyond it is no measurement
MAX_CHARACTERS = 2000  # characters of a text


class Trial(NamedTuple):
    """One timing of a setting. Rates are batches per second of one rank, of which `rate` counts the epoch's start too.

    `wait_share` is the part of the time that the loop waited for a batch. `cpus_used` and `worker_cpus` are CPUs that
    were busy on average, `cpus_queued` processes that could run and had none, `throttled_share` the periods of the CPU
    quota that ended early, `shm_peak` bytes, `gpu_busy` percent; None where nothing told it. `error` is why there is no
    rate. `fresh`: in a process of its own, with its threads from the start.
    """

    setting: Setting
    rate: float
    wait_share: float
    shm_peak: int
    cpus_used: float | None = None
    worker_cpus: float | None = None
    cpus_queued: float | None = None
    throttled_share: float | None = None
    read_per_second: float | None = None
    gpu_busy: float | None = None
    batches: int = 0
    seconds: float = 0.0
    error: str = ""
    fresh: bool = False

    @property
    def timed(self) -> Timed:
        """What the search takes of it."""
        return Timed(self.setting, self.rate)


class TunedLoader(NamedTuple):
    """The loader that trains, as the script has it.

    `key` names it to the next process. `setting` is the script's own; `changes_in_place`: others can be timed under
    its loop, else `reason` says why not. `cpus` are those that the process may use. `batch_size` None: the dataset
    yields batches. `stepped`: an optimizer of torch stepped after its batches; else it went on longest.
    """

    at: str
    key: str
    kind: str
    batch_size: int | None
    setting: Setting
    changes_in_place: bool
    reason: str
    cuda: bool
    cpus: float
    stepped: bool = True


def trial_of(record: Mapping[str, Any], *, fresh: bool) -> Trial | None:
    """Return the timing that a record holds; None for what is none."""
    setting = setting_of(record.get("setting"))
    rate, batches = _number(record.get("rate")), _number(record.get("batches"))
    if setting is None or rate is None:
        return None
    return Trial(
        setting=setting,
        rate=rate,
        wait_share=min(1.0, _number(record.get("wait_share")) or 0.0),
        shm_peak=int(_number(record.get("shm_peak")) or 0),
        cpus_used=_number(record.get("cpus_used")),
        worker_cpus=_number(record.get("worker_cpus")),
        cpus_queued=_number(record.get("cpus_queued")),
        throttled_share=_number(record.get("throttled_share")),
        read_per_second=_number(record.get("read_per_second")),
        gpu_busy=_number(record.get("gpu_busy")),
        batches=int(batches or 0),
        seconds=_number(record.get("seconds")) or 0.0,
        error=_text(record.get("error", "")),
        fresh=fresh,
    )


def loader_of(record: Mapping[str, Any]) -> TunedLoader | None:
    """Return the loader that a record describes; None for what describes none."""
    setting, cpus, size = setting_of(record.get("setting")), _number(record.get("cpus")), record.get("batch_size")
    if setting is None or not cpus:
        return None
    return TunedLoader(
        at=_text(record.get("at", "")),
        key=str(record.get("key", "")),
        kind=_text(record.get("class", "")),
        batch_size=size if isinstance(size, int) and 0 < size < MAX_NUMBER else None,
        setting=setting,
        changes_in_place=record.get("changes_in_place") is True,
        reason=_text(record.get("reason", "")),
        cuda=record.get("cuda") is True,
        cpus=cpus,
        stepped=record.get("stepped") is not False,
    )


def setting_of(value: object) -> Setting | None:
    """Return the setting that JSON holds, None for anything else."""
    if not (isinstance(value, list) and len(value) == len(Setting._fields)):
        return None
    workers, prefetch, pinned, threads = value
    counts = (workers, prefetch) if threads is None else (workers, prefetch, threads)
    return Setting(*value) if all(map(_is_count, counts)) and pinned in (True, False, None) else None


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10_000


def _text(value: object) -> str:
    """Return a text that can be written to a file: names of files that are no UTF-8 come with half characters."""
    return str(value)[:MAX_CHARACTERS].encode("utf-8", "backslashreplace").decode()


def _number(value: object) -> float | None:
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < MAX_NUMBER
    return float(value) if fits else None  # type: ignore[arg-type]


LINES = 20  # of the script's output
_NOTHING_TRAINED = (
    "by then no optimizer of torch had stepped after two batches of a loader, and no loop without one had had 50 "
    "batches in 20 s, or 4 in 60 s"
)


class RunEnd(NamedTuple):
    """How a run ended: its exit code (None: it was stopped, or nobody knows) and the last lines of its output."""

    code: int | None
    log: str


class RecordCollector:
    """What a run has told so far. Records of ranks other than 0 are not taken.

    `seen` is told of each timing, `begins` of each setting whose timing begins.
    """

    def __init__(
        self, seen: Callable[[Trial, TunedLoader], None], begins: Callable[[Setting], None], *, fresh: bool
    ) -> None:
        self._seen, self._begins, self._fresh = seen, begins, fresh
        self._begun = time.monotonic()
        self.loader: TunedLoader | None = None
        self.trials: list[Trial] = []
        self.now: Setting | None = None  # what is being timed
        self.startup = 0.0  # seconds until the first timing began
        self.ended = ""  # why: "script" where that came to its own end
        self.ended_at = 0.0  # when, by the clock that only goes on
        self.loaders: list[str] = []  # of a script that ended before one was chosen

    def take(self, record: Mapping[str, Any]) -> bool:
        """Take a record; return whether the run has told all."""
        if record.get("rank") != 0:
            return False
        kind = record.get("kind")
        if kind == "tune-loader":
            self.loader = self.loader or loader_of(record)
        elif kind == "tune-start":
            self.now = setting_of(record.get("setting"))
            self.startup = self.startup or time.monotonic() - self._begun
            if self.now is not None:
                self._begins(self.now)
        elif kind == "tune-setting":
            self._take_trial(record)
        elif kind == "tune-end":
            return self._take_end(record)
        return False

    def _take_end(self, record: Mapping[str, Any]) -> bool:
        """Take the end of a process. A command may go on after that of one script, so that only our own end is all."""
        if not self.complete:
            self.ended, self.ended_at = str(record.get("reason", "")), time.monotonic()
        seen = record.get("loaders")
        if isinstance(seen, list):
            self.loaders += [str(each.get("at")) for each in seen if isinstance(each, dict)]
        return self.complete

    @property
    def complete(self) -> bool:
        """Whether the search, or the timing that was asked for, came to its end."""
        return self.ended not in {"", "script"}

    def _take_trial(self, record: Mapping[str, Any]) -> None:
        trial = trial_of(record, fresh=self._fresh)
        self.now = None
        if trial is not None and self.loader is not None:
            self.trials.append(trial)
            self._seen(trial, self.loader)


def never_timed(plan: LaunchPlan, heard: RecordCollector, ended: RunEnd, budget: float) -> NotMeasured:
    """Return the error of a run that gave no rate."""
    fix, why = f"run `trainlaunch up {plan.job.path}` first and see it train", ""
    seen = ", ".join(dict.fromkeys(heard.loaders))
    late = heard.complete or (ended.code is None and heard.ended != "script")
    if late:
        message = f"nothing was timed within the budget of {format_duration(round(budget))}"
        why = "its batches take long"
        if heard.loader is None:
            why = f"{_NOTHING_TRAINED}; it iterated loaders at {seen}" if seen else _NOTHING_TRAINED
        fix = f"write --budget {format_duration(round(budget) * 3)}"
    elif ended.code:
        message = f"the script ended with exit code {ended.code} before a loader was timed"
    else:
        message = "the script ended before a loader was timed"
        why = f"loaders at {seen} gave too few batches" if seen else "it iterated no DataLoader of torch"
        fix = "let it train longer, or set num_workers yourself"
    lines = ended.log.strip().splitlines()[-LINES:]
    quoted = "\n".join(lines) if lines else ""
    why = "; its last lines are:\n".join(filter(None, (why, quoted))) if quoted and why else why or quoted
    return NotMeasured([Diagnostic("TL740", message, fix, why=why)])


def refusal(plan: LaunchPlan) -> Diagnostic | None:
    """Return why a job can't be tuned, None where it can."""
    if plan.nodes > 1:
        return Diagnostic(
            "TL741",
            f"the job runs on torchrun.nnodes {plan.nodes}, and one node is timed",
            "add `--set torchrun.nnodes=1`",
            why="the others would have to change their setting at the same batch",
            span=plan.job.span("torchrun.nnodes"),
            field="torchrun.nnodes",
        )
    if not plan.job.data_loader.loaders:
        return Diagnostic(
            "TL741",
            "data_loader is none, so there are no workers to time",
            "set data_loader where the script has DataLoaders",
            span=plan.job.span("data_loader"),
            field="data_loader",
        )
    return None
