"""Takes the records of one run of the script as they come, and says why nothing of it could be timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import NotMeasured
from trainlaunch.inside.tune.task import Setting
from trainlaunch.measure.tune.trial import Trial, TunedLoader, loader_of, setting_of, trial_of
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.units import format_duration

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
        fix = "let it train longer, or state num_workers yourself"
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
            "state data_loader where the script has DataLoaders",
            span=plan.job.span("data_loader"),
            field="data_loader",
        )
    return None
