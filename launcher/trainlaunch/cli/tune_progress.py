"""What `tune` shows while it runs: a row for each timing, and on a terminal what is going on now."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from trainlaunch.cli.look import columns_of
from trainlaunch.cli.streams import Streams
from trainlaunch.measure.tune.table import HEAD, WIDTH, trial_line, words
from trainlaunch.sanitize import one_line
from trainlaunch.units import format_duration

if TYPE_CHECKING:
    from types import TracebackType

    from trainlaunch.inside.tune.task import Setting
    from trainlaunch.measure.tune.trial import Trial, TunedLoader

TICK = 1.0


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
