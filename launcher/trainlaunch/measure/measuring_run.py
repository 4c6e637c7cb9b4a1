"""Runs a measuring plan once on its target, hands its records on, and leaves nothing behind, however it ends."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from trainlaunch.errors import LaunchError
from trainlaunch.measure.marked_lines import MarkedStream
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.console import Console
from trainlaunch.run.base.run_evidence import without_secrets
from trainlaunch.run.base.secret_values import Redactor, values_here
from trainlaunch.run.base.signals import Event, Events, trapped_signals
from trainlaunch.run.run_lock import holding, keeper_of, new_run_id
from trainlaunch.run.run_store import RunStore
from trainlaunch.run.supervise import DEADLINE, Supervisor

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.evidence import Evidence
    from trainlaunch.run.base.backend import Backend
    from trainlaunch.run.kubernetes.client import Cluster
    from trainlaunch.run.kubernetes.launch import Launch

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
        """Take a piece of a stream."""
        rest = self._streams[stderr].feed(data)
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


def run_measuring(
    plan: LaunchPlan, take: Take, shown: RunOutput, typed: str, cluster: Cluster | None = None
) -> MeasuringRun:
    """Run a plan with parts inside on its target; `cluster` is where, for a target that has one.

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
        if cluster is not None:
            return _on_cluster(cluster, plan, console, events, listener)
        ran = _on_machine(plan, console, events, listener, typed)
        return ran._replace(evidence=ran.evidence and without_secrets(ran.evidence, redact))
    finally:
        for each in timers:
            each.cancel()
        listener.end()


def _on_machine(
    plan: LaunchPlan, console: Console, events: Events[Event], listener: _Listener, typed: str
) -> MeasuringRun:
    from trainlaunch.run.backends import backend_named

    run = new_run_id()
    backend = backend_named(plan.target, console.say)
    try:
        backend.prepare(plan, console.say)
        _say_left(backend, plan.measures, console.say)
        with holding(run), trapped_signals(events), _removing(backend, plan, run, console.say):
            outcome = Supervisor(backend, plan, console, events).run(run, _claim(plan, typed, console.say))
    finally:
        backend.close()
    by = outcome.evidence.stopped_by if outcome.evidence else ""
    return _ran(outcome.exit_code, by, listener, outcome.evidence)


def _say_left(backend: Backend, job: str, say: Callable[[str], None]) -> None:
    """Name runs that measured the same job and that nobody keeps: a SIGKILL of their trainlaunch left them."""
    left = dict.fromkeys(each.job for each in backend.listed() if each.measures == job and keeper_of(each.run) is None)
    for each in left:
        say(f"{each} measured the same job and is left over; `trainlaunch down {each}` removes it")


@contextmanager
def _removing(backend: Backend, plan: LaunchPlan, run: str, say: Callable[[str], None]) -> Iterator[None]:
    """Remove the containers of a run afterwards, those that still run too."""
    try:
        yield
    finally:
        try:
            for each in backend.runs(plan.job.name, run):
                if not each.ended and each.status == "running":
                    backend.kill(each.id)
                    backend.wait(each.id)
                backend.remove(each.id)
            RunStore(run).remove()
        except LaunchError as cause:
            say(f"something of {plan.job.name} is left; `trainlaunch down {plan.job.name}` removes it: {cause}")


def _claim(plan: LaunchPlan, typed: str, say: Callable[[str], None]) -> AbstractContextManager[None]:
    """Return what keeps the job's GPUs its own while it is started; nothing where it has none."""
    if not plan.gpus:
        return nullcontext()
    from trainlaunch.run.gpu_holds import reserve_gpus

    return reserve_gpus(plan, typed, say)


def _on_cluster(
    cluster: Cluster, plan: LaunchPlan, console: Console, events: Events[Event], listener: _Listener
) -> MeasuringRun:
    from trainlaunch.run.kubernetes.attempts import follow_attempts
    from trainlaunch.run.kubernetes.follow import FollowOptions
    from trainlaunch.run.kubernetes.identity import who_am_i
    from trainlaunch.run.kubernetes.launch import Launch

    launch = Launch(cluster, plan, who_am_i(cluster), console.say)
    console.say(f"{cluster.access.words} ({cluster.access.server}), namespace {cluster.namespace}: {launch.words}")
    launch.refuse_taken(launch.check())
    options = FollowOptions(job=plan.job, stop_on_interrupt=True, grace=plan.job.stop_grace_period)
    with trapped_signals(events):
        run = launch.make()  # where it fails it deletes what it made itself, and what holds a name is not ours
        with _removing_objects(cluster, launch, console.say):
            last = follow_attempts(launch, run, console, events, options=options, ignored=frozenset())
    if last.end.error is not None:
        raise last.end.error
    if last.end.how == "stuck" and last.end.wait is not None:
        console.say(last.end.wait.given_up)
    reason = last.end.result.reason if last.end.result else ""
    by = DEADLINE if reason == "DeadlineExceeded" else last.end.stopped_by
    return _ran(last.end.exit_code, by, listener, last.evidence)


@contextmanager
def _removing_objects(cluster: Cluster, launch: Launch, say: Callable[[str], None]) -> Iterator[None]:
    """Delete all that a launch made afterwards, and wait until it is gone."""
    from trainlaunch.run.kubernetes.objects import delete, get_object, wait_until_gone

    try:
        yield
    finally:
        try:
            places = launch.places()
            for place in reversed(places):
                if get_object(cluster, place) is not None:
                    delete(cluster, place)
            wait_until_gone(
                cluster, lambda: [each for each in places if get_object(cluster, each) is not None], grace=30, say=say
            )
        except LaunchError as cause:
            say(f"something of {launch.words} may be left in {cluster.words}: {cause}")


def _ran(exit_code: int, stopped_by: str, listener: _Listener, evidence: Evidence | None) -> MeasuringRun:
    interrupted = "" if stopped_by in {DEADLINE, ENOUGH} else stopped_by
    return MeasuringRun(exit_code, interrupted, stopped_by == DEADLINE, listener.workers(), evidence)
