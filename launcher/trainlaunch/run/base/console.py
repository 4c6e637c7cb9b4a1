"""What a follower of a run is given: the console that it writes to, what it says there, and signals as events.

`tmux kill-session` sends SIGHUP twice, `timeout` SIGTERM twice, and wrappers hand on a Ctrl-C that a terminal sends to
everybody: so one that comes again says nothing new. Only a second press of Ctrl-C does.
"""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from trainlaunch.errors import LaunchError
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.backend import Chunk, Say
from trainlaunch.run.base.followed_log import HangWatch
from trainlaunch.units import format_duration

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.evidence import Evidence
    from trainlaunch.run.base.wait_reading import DataWait


@dataclass(frozen=True, slots=True)
class Console:
    """Where a followed job's bytes go, and our own lines; `hangs` names a log that will never end.

    `leave` is told why the terminal is gone; nothing is shown from then on, and `is_left`.
    `report_deviations`: workers and sizes that aren't as planned are said.
    """

    out: Callable[[bytes], None]
    err: Callable[[bytes], None]
    say: Say
    detect_hang: HangWatch
    on_hangup: Say = lambda _: None
    is_left: Callable[[], bool] = lambda: False
    report_deviations: bool = True

    def show(self, chunk: Chunk) -> None:
        """Write a piece of the job's output."""
        (self.err if chunk.stderr else self.out)(chunk.data)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: its exit code, and the evidence (None: the target was lost).

    `node` is the one of several that the exit code is from; `stopped_by` is empty where it ended by itself.
    `data_wait` is what it waited for data in its `seconds`, None where that was not seen.
    """

    exit_code: int
    evidence: Evidence | None
    node: int | None = None
    stopped_by: str = ""
    data_wait: DataWait | None = None
    seconds: float = 0.0


def load_symptoms() -> None:
    """Load what reads a log, which the first output needs; a target takes longer to start a container than this."""
    from trainlaunch.diagnose import new_scanner  # all symptoms; a start needs none

    new_scanner()


def hang_watch(plan: LaunchPlan, redacted: Callable[[str], str] = str) -> HangWatch:
    """Return what tells of a log that its job will never end, in one sentence with the fix; empty where it may.

    `redacted` takes secrets out of a log before it is quoted.
    """
    memory = plan.job.resources.memory or 0

    def detect_hang(log: str) -> str:
        from trainlaunch.diagnose import explain_hang
        from trainlaunch.diagnose.base.evidence import Evidence

        known = Evidence(None, redacted(log), shm_size=plan.shm.size.value, memory=memory, target=plan.target)
        diagnosis = explain_hang(known)
        return f"{diagnosis.sentence}; {diagnosis.fix}" if diagnosis else ""

    return detect_hang


CTRL_C = "Ctrl-C"
DEADLINE = "active_deadline"  # what ends a run beside signals
UNHEALTHY = "unhealthy"  # the kind of an event: the health check, in `value`, has something against the job
LATE = "late"  # the kind of an event: none came in time
HANGUP = "hangup"  # the kind of an event: nobody asks for a stop, the terminal is gone
NAMES = {signal.SIGINT: CTRL_C, signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}
SAME_PRESS_SECONDS = 1.0
_HEARS_EACH = 0.5  # seconds


@dataclass(frozen=True, slots=True)
class Event:
    """What a follower reacts to: signal or hangup (`value` is its name), exit (`code`), drained, trouble (a sentence).

    `at` is when a signal came, in seconds of the monotonic clock.
    """

    kind: str
    value: str = ""
    code: int | None = None
    at: float = 0.0


Events = queue.SimpleQueue  # the only queue whose put is safe inside a signal handler


@contextlib.contextmanager
def trapped_signals(events: Events[Event]) -> Iterator[None]:
    """Turn SIGINT, SIGTERM and SIGHUP into events; only the main thread can. One that is ignored (nohup) stays so.

    One that came is ignored afterwards: the same again, a moment later, would take the job's exit code from a process
    that is about to end with it.
    """
    came: set[int] = set()

    def handler(number: int, _frame: FrameType | None) -> None:
        came.add(number)
        kind = HANGUP if number == signal.SIGHUP else "signal"
        events.put(Event(kind, NAMES[signal.Signals(number)], at=time.monotonic()))

    heard = [each for each in NAMES if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, handler) for each in heard}
    try:
        yield
    finally:
        for each, old in before.items():
            signal.signal(each, signal.SIG_IGN if each in came else old)


def next_event(events: Events[Event], seconds: float | None = None) -> Event:
    """Return the next event, one of the kind LATE where none comes within `seconds`.

    The kernel may give a signal to another thread, and that wakes no wait of the main one: it looks up now and then.
    """
    until = None if seconds is None else time.monotonic() + seconds
    while True:
        left = _HEARS_EACH if until is None else until - time.monotonic()
        try:
            return events.get(timeout=max(0.0, min(left, _HEARS_EACH)))
        except queue.Empty:
            if until is not None and time.monotonic() >= until:
                return Event(LATE)


def attempt_aside(events: Events[Event], action: Callable[[], None]) -> None:
    """Do something in a thread of its own; what kept it from being done comes as an event."""

    def attempt() -> None:
        try:
            action()
        except LaunchError as cause:
            events.put(Event("trouble", str(cause)))

    threading.Thread(target=attempt, daemon=True).start()


class Presses:
    """Counts presses of Ctrl-C."""

    def __init__(self) -> None:
        self._first: float | None = None

    def is_second(self, event: Event) -> bool:
        """Take a signal; return whether it is a second press: within a second it is the first one, handed on."""
        if event.value != CTRL_C:
            return False
        if self._first is None:
            self._first = event.at
            return False
        return event.at - self._first >= SAME_PRESS_SECONDS


def expired(what: str, ttl: int) -> str:
    """Return what is said when a run is removed whose ttl_after_finished of `ttl` seconds is over."""
    return f"removed {what}: its ttl_after_finished {format_duration(ttl)} is over"


def another_attempt(ended: int, limit: int, exit_code: int, wait: int = 0) -> str:
    """Return what is said between attempt number `ended` and the next, which starts `wait` seconds later."""
    later = f" in {format_duration(wait)} (restart.backoff)" if wait else ""
    return f"attempt {ended} of {limit} ended with exit code {exit_code}; starting attempt {ended + 1}{later}"


def not_kept(max_attempts: int, deadline: int | None) -> str:
    """Return what a run goes without where no process keeps it, as a clause."""
    off = [f"restart.max_attempts {max_attempts}"] * (max_attempts > 1)
    off += [] if deadline is None else [f"active_deadline {format_duration(deadline)}"]
    if not off:
        return "nobody watches it for hangs"
    return f"{' and '.join(off)} {'are' if len(off) > 1 else 'is'} off"


def not_started(number: int, cause: LaunchError) -> str:
    """Return what is said of a further attempt that can't be started; the code of the last one is then the run's."""
    whys = (f"{each.code}: {each.message}; {each.fix}" for each in cause.diagnostics)
    return f"attempt {number} can't be started: {'; '.join(whys)}"


def stopping(why: str, grace: int, *, by: str) -> str:
    """Return what is said when a job is told to end within `grace` seconds; `by` is the signal or deadline."""
    kills = "Ctrl-C again" if by == CTRL_C else "Ctrl-C pressed twice"
    said = f"{why}: stopping the job; it has {format_duration(grace)} to end, {kills} kills it"
    if by != "SIGTERM":
        return said
    return f"{said}; whoever sent SIGTERM must wait longer than stop_grace_period {format_duration(grace)} with SIGKILL"
