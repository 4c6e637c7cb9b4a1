"""The runs that `tune` makes, under a name of their own and with the job's own limits, and what it shows meanwhile."""

from __future__ import annotations

import argparse
import math
import shlex
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from trainlaunch.cli.output.streams import Streams, columns_of
from trainlaunch.inside.tune.task import Setting
from trainlaunch.measure.measuring_run import PREPARES
from trainlaunch.measure.tune.result import HEAD, WIDTH, trial_line, words
from trainlaunch.measure.tune.trial import RunEnd, Trial, TunedLoader
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.sanitize import one_line
from trainlaunch.units import format_duration

if TYPE_CHECKING:
    from trainlaunch.run.base.store import RunStore

KEPT = 64  # pieces of output: the last lines are shown where a run fails
TICK = 1.0


class Runs:
    """Makes runs that measure `job`, one after the other. Lines of ours about them go to `say`, each once."""

    def __init__(self, args: argparse.Namespace, say: Callable[[str], None], store: RunStore, job: str) -> None:
        self._typed = shlex.join(["trainlaunch", *args.words])
        self._say, self._store, self._job = say, store, job
        self._said: set[str] = set()

    def start(self, plan: LaunchPlan, take: Callable[[Mapping[str, Any]], bool], seconds: float) -> RunEnd:
        """Run `plan` to its end, or until `take` returns True, for `seconds` at most once it is scheduled.

        Raises KeyboardInterrupt where the user ended it, and TargetUnavailable where it can't be started.
        """
        from trainlaunch.measure.measuring_run import RunOutput, run_measuring
        from trainlaunch.run.base.secret_values import Redactor, values_here

        output: deque[bytes] = deque(maxlen=KEPT)
        limit = math.ceil(seconds) + (PREPARES if self._store.schedules else 0)
        limited = plan._replace(job=plan.job._replace(active_deadline=limit), measures=self._job)
        ran = run_measuring(limited, take, RunOutput(output.append, self._say_once), self._typed, self._store)
        if ran.interrupted:
            self._say(f"{ran.interrupted}: nothing more is timed, and nothing is written")
            raise KeyboardInterrupt
        words = Redactor(values_here(plan).items())(b"".join(output).decode(errors="replace"))
        return RunEnd(None if ran.deadline else ran.exit_code, words)

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._say(text)


class Progress:
    """Writes to stderr. On a terminal the last line tells the time that is spent; elsewhere each run has a line."""

    def __init__(self, streams: Streams, budget: int, ranks: int) -> None:
        self._streams, self._budget, self._ranks = streams, budget, ranks
        self._terminal = streams.err.isatty()
        self._now = ""
        self._begun = time.monotonic()
        self._headed = False
        self._lock = threading.Lock()
        self._over = threading.Event()

    def __enter__(self) -> None:
        """Begin to tell the time."""
        if self._terminal:
            threading.Thread(target=self._tick, daemon=True).start()

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        """Take the last line away."""
        self._over.set()
        with self._lock:
            self._clear()

    def say(self, text: str) -> None:
        """Say a line of ours about a run."""
        with self._lock:
            self._clear()
            self._streams.say(f"trainlaunch: {text}")

    def begins(self, what: str) -> None:
        """A run begins."""
        self._now = what
        if self._terminal:
            self._show()
        else:
            self._streams.say(f"trainlaunch: timing {what}")

    def times(self, setting: Setting) -> None:
        """The timing of a setting begins, in the run that goes on."""
        self._now = words(setting)
        if self._terminal:
            self._show()

    def seen(self, trial: Trial, loader: TunedLoader) -> None:
        """A setting was timed."""
        with self._lock:
            self._clear()
            if not self._headed:
                self._headed = True
                self._streams.say(one_line(f"{loader.kind} at {loader.at}"))
                if loader.reason:
                    self._streams.say(one_line(f"one process for each setting: {loader.reason}"))
                self._streams.say(HEAD)
            self._streams.say(one_line(trial_line(trial, loader, self._ranks)))
        if self._terminal:
            self._show()

    def _tick(self) -> None:
        while not self._over.wait(TICK):
            self._show()

    def _show(self) -> None:
        spent = format_duration(round(time.monotonic() - self._begun) or 1)
        with self._lock:
            if not self._over.is_set():
                now = f"{spent} of {format_duration(self._budget)}: timing {one_line(self._now)}"
                room = (columns_of(self._streams.err) or WIDTH) - 1  # a line that goes on below can't be taken away
                self._write(f"\r\x1b[K{now[:room]}")

    def _clear(self) -> None:
        if self._terminal:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        try:
            self._streams.err.write(text)
            self._streams.err.flush()
        except OSError:
            self._terminal = False
