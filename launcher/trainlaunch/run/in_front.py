"""Follows a run that stands in front of its caller as the bare command would: its signals are the job's own."""

from __future__ import annotations

import time
from typing import Protocol, cast

from trainlaunch.run.base.console import CTRL_C, Event, Events, Outcome, attempt_aside
from trainlaunch.run.supervise import Attempt, Supervisor

PASSED_ON = "Ctrl-C, passed on"  # the job's own terminal has made it a SIGINT
SAME_PRESS_SECONDS = 0.5  # a terminal's Ctrl-C that others hand on too is one press
KILLS_WITHIN_SECONDS = 10.0  # a second press so soon after the first means that the job shall end at any price
ENDS_WITHIN_SECONDS = 30.0  # a job that ends so soon after a press was ended by it


class Interruptible(Protocol):
    """A target that can hand on a Ctrl-C."""

    def interrupt(self, container: str) -> None:
        """Send SIGINT to the job, as a terminal does; no more than that."""


def passed_on(events: Events[Event]) -> None:
    """Tell a supervisor of a Ctrl-C that the job has already."""
    events.put(Event("signal", PASSED_ON, at=time.monotonic()))


class ForegroundSupervisor(Supervisor):
    """Hands signals on: Ctrl-C is SIGINT to the job, which may go on after it; a second one kills the job."""

    _pressed: float | None = None

    def _signalled(self, container: str, event: Event) -> None:
        if event.value not in {CTRL_C, PASSED_ON}:
            super()._signalled(container, event)
            return
        since = None if self._pressed is None else event.at - self._pressed
        if since is not None and since < SAME_PRESS_SECONDS:
            return
        self._pressed = event.at
        if since is not None and since < KILLS_WITHIN_SECONDS:
            self._killed_by = CTRL_C
            self._console.say("Ctrl-C again: killing it")
            attempt_aside(self._events, lambda: self._backend.kill(container))
        elif event.value == CTRL_C:
            attempt_aside(self._events, lambda: cast("Interruptible", self._backend).interrupt(container))

    def _outcome(self, attempt: Attempt, code: int | None) -> Outcome:
        if self._pressed is not None and time.monotonic() - self._pressed < ENDS_WITHIN_SECONDS:
            self._stopped_by = CTRL_C
        return super()._outcome(attempt, code)
