"""`up`: starts a job, follows it, tries again where asked, stops it when told to. The same on every target."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from trainlaunch.errors import LaunchError
from trainlaunch.exit_codes import EXIT_BEFORE_START
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.backend import Backend, ContainerInfo, Say, Session
from trainlaunch.run.base.console import (
    DEADLINE,
    HANGUP,
    LATE,
    UNHEALTHY,
    Console,
    Event,
    Events,
    Outcome,
    Presses,
    another_attempt,
    attempt_aside,
    load_symptoms,
    next_event,
    not_started,
    stopping,
)
from trainlaunch.run.base.followed_log import Log
from trainlaunch.run.base.multi_node import Prefixed, containers_of, deciding, prefix
from trainlaunch.run.base.retry import backoff, may_retry
from trainlaunch.run.base.run_evidence import NEVER_SPOKE, EndNote, evidence_of, preflight_never_ran
from trainlaunch.run.base.shm_reading import highest, measured_line
from trainlaunch.run.base.wait_reading import of_nodes
from trainlaunch.run.base.watch import ShmWatch, planned_shm
from trainlaunch.run.run_record import RunRecord
from trainlaunch.units import format_duration

LOOK_SECONDS = 20.0  # between two looks at a run that waits; a Podman service of ours ends after 30 idle ones


class Attempt(NamedTuple):
    """One attempt of a run; `watched` has its containers by node, under None where there is one.

    `resumed`: somebody else started it, so its first output is the log's, as far as the log goes back.
    """

    container: str
    run: str
    number: int
    watched: dict[int | None, ShmWatch]
    resumed: bool = False


class Supervisor:
    """Follows one run on one backend; `events` is fed by signals, `kept` takes down what nobody could tell later."""

    def __init__(
        self, backend: Backend, plan: LaunchPlan, console: Console, events: Events[Event], kept: RunRecord | None = None
    ) -> None:
        self._backend, self._plan = backend, plan
        self._console, self._events = console, events
        self._kept = kept or RunRecord("")  # which keeps nothing
        self._stopped_by = self._killed_by = ""
        self._unhealthy = ""  # what was said against the attempt that goes on
        self._presses = Presses()
        self._ends_at: float | None = None

    def run(self, run: str, claim: AbstractContextManager[None] | None = None) -> Outcome:
        """Run all attempts; `claim` is held while the first starts. Raises TargetUnavailable where one can't."""
        self._count_from(time.time())
        with claim or nullcontext():
            first = self._started(run, 1)
        return self._to_the_last(*first)

    def resume(self, containers: tuple[ContainerInfo, ...]) -> Outcome:
        """Go on with an attempt that was started already, whose `containers` these are, and with those after it."""
        now = containers[0]
        same = [each.created for each in self._backend.runs(now.job, now.run)]
        self._count_from(min([now.created, *same]))
        container = now.id if self._plan.nodes == 1 else now.project
        attempt = Attempt(container, now.run, now.attempt, self._all_watched(now.attempt), resumed=True)
        return self._to_the_last(attempt, self._backend.resume(container))

    def _count_from(self, begun: float) -> None:
        """Let active_deadline count from a time of day: over all attempts, whoever supervised it meanwhile."""
        if self._plan.job.active_deadline is not None:
            self._ends_at = time.monotonic() + begun + self._plan.job.active_deadline - time.time()

    def _started(self, run: str, number: int) -> tuple[Attempt, Session]:
        attempt = Attempt(self._backend.create(self._plan, run, number), run, number, self._all_watched(number))
        self._spawn(load_symptoms)  # while the target starts it
        return attempt, self._backend.begin(attempt.container)

    def _to_the_last(self, attempt: Attempt, session: Session) -> Outcome:
        job, limit = self._plan.job, self._plan.job.max_attempts
        while True:
            outcome = self._followed(attempt, session)
            if attempt.number >= limit or not may_retry(outcome.exit_code, outcome.evidence, job.on_exit_codes):
                return outcome
            wait = backoff(job, attempt.number)
            self._console.say(another_attempt(attempt.number, limit, outcome.exit_code, wait))
            if not self._waited(attempt, wait):
                return outcome
            try:
                attempt, session = self._started(attempt.run, attempt.number + 1)
            except LaunchError as cause:
                self._console.say(not_started(attempt.number + 1, cause))
                return outcome

    def _waited(self, attempt: Attempt, seconds: float) -> bool:
        """Wait before another attempt; return whether nobody said meanwhile, as `down` does, that there is none."""
        until = time.monotonic() + seconds
        ends_at = math.inf if self._ends_at is None else self._ends_at
        while not self._stopped_by:
            now = time.monotonic()
            if now >= ends_at:
                self._stopped_by = DEADLINE
            elif not self._is_there(attempt):
                return False
            elif now >= until:
                return True
            else:
                self._take_while_waiting(min(until, ends_at, now + LOOK_SECONDS) - now)
        self._console.say(f"{self._stopped_by}: no further attempt")
        return False

    def _take_while_waiting(self, seconds: float) -> None:
        event = next_event(self._events, seconds)
        if event.kind == HANGUP:
            self._console.on_hangup(event.value)
        elif event.kind == "signal":
            self._stopped_by = event.value

    def _is_there(self, attempt: Attempt) -> bool:
        try:
            return bool(self._containers(attempt))
        except LaunchError:
            return True  # the next attempt says that the engine is away

    def _followed(self, attempt: Attempt, session: Session) -> Outcome:
        for started in self._containers(attempt):
            attempt.watched[started.node].start(started)
        self._spawn(self._read, session, attempt.watched)
        self._spawn(lambda: self._events.put(Event("exit", code=session.exit_code())))
        self._unhealthy = ""
        code = self._until_end(attempt.container)
        return self._outcome(attempt, code)

    def _all_watched(self, attempt: int) -> dict[int | None, ShmWatch]:
        nodes: list[int | None] = [None] if self._plan.nodes == 1 else [*range(self._plan.nodes)]
        return {each: self._watched(attempt, each) for each in nodes}

    def _watched(self, attempt: int, node: int | None) -> ShmWatch:
        before = "" if node is None else prefix(node).decode()
        say: Say = lambda text: self._console.say(before + text)  # noqa: E731
        note = partial(self._kept.saw, attempt, node)
        log = Log(self._console.detect_hang, say)
        planned = planned_shm(self._plan)._replace(compares=self._console.report_deviations)
        return ShmWatch(self._backend, planned, log, say, note, self._found_unhealthy)

    def _found_unhealthy(self, why: str) -> None:
        if self._plan.job.healthcheck.stops:
            self._events.put(Event(UNHEALTHY, why))

    def _containers(self, attempt: Attempt) -> tuple[ContainerInfo, ...]:
        run, number = attempt.run, attempt.number
        return containers_of(self._backend, self._plan, attempt.container, run=run, attempt=number)

    def _spawn(self, work: Callable[..., None], *args: object) -> None:
        threading.Thread(target=work, args=args, daemon=True).start()

    def _read(self, session: Session, watched: dict[int | None, ShmWatch]) -> None:
        prefixed = Prefixed()
        try:
            for chunk in session.chunks():
                self._console.show(replace(chunk, data=prefixed.take(chunk)))
                watched[chunk.node].log.take(chunk)
            for last in prefixed.rest():
                self._console.show(last)
        finally:
            self._events.put(Event("drained"))

    def _until_end(self, container: str) -> int | None:
        """React to events until the job has ended and its output is drained; return its exit code, None if lost."""
        code: int | None = None
        exited = drained = False
        while not (exited and drained):
            event = next_event(self._events, self._seconds_left())
            if event.kind == LATE:
                self._stop(container, DEADLINE)
            elif event.kind == "exit":
                exited, code = True, event.code
            elif event.kind == "drained":
                drained = True
            elif event.kind == "trouble":
                self._console.say(event.value)
            elif event.kind == HANGUP:
                self._console.on_hangup(event.value)
            elif event.kind == UNHEALTHY:
                self._end_unhealthy(container, event.value, exited=exited)
            elif exited:
                self._stopped_by = event.value
                break  # the job is over, and whoever reads our stdout does not read
            else:
                self._signalled(container, event)
        return code

    def _seconds_left(self) -> float | None:
        if self._ends_at is None or self._stopped_by:
            return None
        return max(0.0, self._ends_at - time.monotonic())

    def _signalled(self, container: str, event: Event) -> None:
        second = self._presses.is_second(event)
        if not self._stopped_by:
            self._stop(container, event.value)
        elif second and not self._killed_by:
            self._killed_by = event.value
            self._console.say("killing it")
            attempt_aside(self._events, lambda: self._backend.kill(container))

    def _stop(self, container: str, by: str) -> None:
        self._stopped_by = by
        reason = by
        if by == DEADLINE:
            reason = f"active_deadline {format_duration(self._plan.job.active_deadline or 0)} is over"
        self._end(container, reason, by=by)

    def _end_unhealthy(self, container: str, why: str, *, exited: bool) -> None:
        """Stop an attempt as one that failed; the next one follows where restart.max_attempts has one left."""
        if not (exited or self._stopped_by or self._unhealthy):
            self._unhealthy = why
            self._end(container, why, by=UNHEALTHY)

    def _end(self, container: str, reason: str, *, by: str) -> None:
        self._console.say(stopping(reason, self._plan.job.stop_grace_period, by=by))
        attempt_aside(self._events, lambda: self._backend.stop(container))

    def _outcome(self, attempt: Attempt, code: int | None) -> Outcome:
        try:
            containers = self._containers(attempt)
            ended = deciding(containers) if containers else None
            signals = self._backend.signals(ended) if ended is not None else ()
        except LaunchError as cause:
            self._end_watches(attempt, ())
            self._console.say(f"the engine was lost while following: {cause}")
            return self._lost() if code is None else Outcome(code, None)
        self._end_watches(attempt, containers)
        if ended is None:
            self._console.say("somebody removed the run while it was followed")
            return Outcome(EXIT_BEFORE_START if code is None else code, None)
        if code is None or ended.node is not None:
            code = ended.exit_code
        if code is None:
            return self._lost(ended.error)
        shm = attempt.watched[ended.node]
        log = shm.log
        self._remark(attempt, ended, code)
        spoke = log.preflight_spoke or (None if attempt.resumed else False)  # it may have, before what was seen
        note = EndNote(self._stopped_by, self._killed_by, shm.peak, spoke, self._unhealthy)
        self._kept.end(attempt.number, note)
        told = evidence_of(ended, log=log.text, signals=signals, note=note)
        evidence = replace(told, exit_code=code, scanned=log.facts)
        if preflight_never_ran(self._backend, containers, note):
            self._console.say(NEVER_SPOKE)
            code = EXIT_BEFORE_START
        waited = of_nodes(each.waits.seen for each in attempt.watched.values())
        return Outcome(code, evidence, ended.node, data_wait=waited, seconds=ended.finished - ended.started)

    def _end_watches(self, attempt: Attempt, containers: tuple[ContainerInfo, ...]) -> None:
        last = {each.node: each.health_output for each in containers}
        for node, watched in attempt.watched.items():
            watched.end(last.get(node, ""))
            self._kept.keep_wait(attempt.number, node, watched.waits.seen)

    def _lost(self, error: str = "") -> Outcome:
        job = self._plan.job.name
        goes_on = f"the job may go on: `trainlaunch logs -f {job}` follows it, `trainlaunch wait {job}` has its code"
        self._console.say(error or goes_on)
        return Outcome(EXIT_BEFORE_START, None)

    def _remark(self, attempt: Attempt, ended: ContainerInfo, code: int) -> None:
        noted = (self._kept.peak(attempt.number, node) for node in attempt.watched)  # `status` may have seen it
        peak = highest([*noted, *(each.seen for each in attempt.watched.values())])
        fewer = attempt.watched[ended.node].fewer_workers() if code == 0 else ""
        size = "" if self._plan.by_run else measured_line(ended.planned, peak, size=ended.own_shm, exit_code=code)
        for line in (fewer, size):
            if line and self._console.report_deviations:
                self._console.say(line)
