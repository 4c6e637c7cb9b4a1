"""Takes the records of one run of the script as they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from trainlaunch.inside.tune.task import Setting
from trainlaunch.measure.tune.trial import Trial, TunedLoader, loader_of, setting_of, trial_of


class Ended(NamedTuple):
    """How a run ended: its exit code (None: it was stopped, or nobody knows) and the last lines of its output."""

    code: int | None
    log: str


class Hearing:
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
        if not self.told_all:
            self.ended, self.ended_at = str(record.get("reason", "")), time.monotonic()
        seen = record.get("loaders")
        if isinstance(seen, list):
            self.loaders += [str(each.get("at")) for each in seen if isinstance(each, dict)]
        return self.told_all

    @property
    def told_all(self) -> bool:
        """Whether the search, or the timing that was asked for, came to its end."""
        return self.ended not in {"", "script"}

    def _take_trial(self, record: Mapping[str, Any]) -> None:
        trial = trial_of(record, fresh=self._fresh)
        self.now = None
        if trial is not None and self.loader is not None:
            self.trials.append(trial)
            self._seen(trial, self.loader)
