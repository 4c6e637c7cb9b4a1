"""Runs a measuring plan once on its target, hands its records on, and leaves nothing behind, however it ends.

What such a run has other than the job: a /dev/shm as large as its limits allow, one attempt, and its own name, which no
run of the job has, so that neither stands in the other's way.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from trainlaunch.kinds import JOB
from trainlaunch.measure.marked_lines import START, MarkedStream
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.console import DEADLINE, Console, Event, Events
from trainlaunch.run.base.secret_values import Redactor, values_here
from trainlaunch.units import MIB

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.evidence import Evidence
    from trainlaunch.run.base.store import RunStore

MAX_NAME = 40  # of the job, before what says that it measures
GRACE = 10  # seconds: nothing that a measured script would still save is wanted
PREPARES = 1800  # seconds that a script may take to its first batch


def measuring_name(job: str, verb: str) -> str:
    """Return a new name for a run of `job` that measures: digits-probe-3f9a."""
    return f"{job[:MAX_NAME].rstrip('-')}-{verb}-{secrets.token_hex(2)}"


def measuring_sets(plan: LaunchPlan, name: str, *, seconds: float, host_memory: int) -> tuple[str, ...]:
    """Return, as --set takes them, what such a run called `name` has other than the job whose `plan` this is.

    `seconds` is how long it measures, `host_memory` the bytes of this host, for a job without a limit.
    """
    return tuple(f"{field}={value}" for field, value in _fields(plan, name, seconds, host_memory))


def _fields(plan: LaunchPlan, name: str, seconds: float, host_memory: int) -> Iterator[tuple[str, object]]:
    job = plan.job
    yield "name", name
    yield "restart", "{max_attempts: 1}"
    if job.stop_grace_period > GRACE:
        yield "stop_grace_period", f"{GRACE}s"
    if job.active_deadline is None:
        yield "active_deadline", f"{PREPARES + int(seconds)}s"
    if plan.target_record.private_shm:
        yield "shm_size", _largest_shm(plan, host_memory)
    if plan.nodes > 1:
        yield "torchrun.nnodes", 1
    if job.kind is not None and job.kind.controller:  # whose pods come late, and are several
        yield "kubernetes.kind", JOB.word


def _largest_shm(plan: LaunchPlan, host_memory: int) -> int:
    """Return the largest /dev/shm that memory limit and policy allow: it costs nothing until it is used."""
    memory = plan.job.resources.memory
    most = memory - 1 if memory else max(plan.shm.size.value, host_memory // 2)
    ceiling = plan.job.ceiling("shm_size")
    return min(most, ceiling.value if ceiling else most) // MIB * MIB


LET_END_SECONDS = 5.0  # for all ranks to end by themselves once rank 0 has what it needs
OWN_END_SECONDS = 300.0  # for a script that comes to its own end: it may still save, and send to a tracker
ENOUGH = "rank 0 has measured enough"
_WORKERS = re.compile(rb"trainlaunch: preflight passed: (?:(?!preflight )[^\n])*\bnum_workers (\d{1,9})\b")
_HEAD = 64 * 1024  # bytes of output in which the preflight's line stands

Take = Callable[[dict[str, Any]], bool]  # a record; True where nothing more is needed


class MeasuringRun(NamedTuple):
    """How a run ended. `interrupted` names the signal by which the user ended it, empty where none did.

    `deadline`: active_deadline ended it. `workers` is the number of automatic workers that the preflight gave to the
    script, None where it said none. `evidence` is None where the target was lost.
    """

    exit_code: int
    interrupted: str
    deadline: bool
    workers: int | None
    evidence: Evidence | None


class RunOutput(NamedTuple):
    """Where the job's own output goes (`output`), and lines of ours (`say`)."""

    output: Callable[[bytes], None]
    say: Callable[[str], None]


class _Listener:
    """Takes records out of both streams, and shows the rest until rank 0 was ended: what comes then is its echo.

    `enough` is told how many seconds all of it may still take.
    """

    def __init__(self, take: Take, shown: RunOutput, enough: Callable[[float], None]) -> None:
        self._take, self._shown, self._enough = take, shown, enough
        self._streams = {each: MarkedStream(self._record) for each in (False, True)}
        self._head = b""
        self.over = False

    def feed(self, stderr: bool, data: bytes) -> None:
        """Take a piece of a stream; lines before the record that is enough are the script's own, and are shown."""
        for piece in data.splitlines(keepends=True) if START[:1] in data else (data,):
            rest = self._streams[stderr].feed(piece)
            if len(self._head) < _HEAD:
                self._head += rest[:_HEAD]
            self._show(rest)

    def end(self) -> None:
        """Show what was held back, when nothing more comes."""
        for each in self._streams.values():
            self._show(each.end())

    def workers(self) -> int | None:
        """Return the workers that the preflight has said."""
        found = _WORKERS.search(self._head)
        return int(found[1]) if found else None

    def _show(self, data: bytes) -> None:
        if data and not self.over:
            self._shown.output(data)

    def _record(self, record: dict[str, Any]) -> None:
        if self._take(record):
            itself = record.get("reason") == "script"
            self.over = not itself
            self._enough(OWN_END_SECONDS if itself else LET_END_SECONDS)


def run_measuring(plan: LaunchPlan, take: Take, shown: RunOutput, typed: str, store: RunStore) -> MeasuringRun:
    """Run a plan with parts inside where `store` holds the runs of its target.

    `typed` is the user's command, for an error that completes it. Raises TargetUnavailable where it can't be started.
    """
    events: Events[Event] = Events()
    timers: list[threading.Timer] = []

    def enough(seconds: float) -> None:
        timer = threading.Timer(seconds, lambda: events.put(Event("signal", ENOUGH)))
        timer.daemon = True
        timers.append(timer)
        timer.start()

    redact = Redactor(values_here(plan).items())
    listener = _Listener(lambda record: take(redact.record(record)), shown, enough)
    console = Console(
        out=lambda data: listener.feed(False, data),
        err=lambda data: listener.feed(True, data),
        say=shown.say,
        detect_hang=lambda _: "",
        on_hangup=lambda why: events.put(Event("signal", why)),  # nobody would see the result
        report_deviations=False,  # the plan it runs with is what is asked for
    )
    try:
        ran = store.run_apart(plan, console, events, typed)
    finally:
        for each in timers:
            each.cancel()
        listener.end()
    interrupted = "" if ran.stopped_by in {DEADLINE, ENOUGH} else ran.stopped_by
    return MeasuringRun(ran.exit_code, interrupted, ran.stopped_by == DEADLINE, listener.workers(), ran.evidence)
