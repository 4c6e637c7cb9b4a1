"""Starts a plan's run on this host and keeps it to its end, leaves a supervisor with it, or shows what others keep."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import LaunchError, UsageError
from trainlaunch.exit_codes import EXIT_INTERRUPTED
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.backend import Backend, ContainerInfo, Say
from trainlaunch.run.base.console import (
    HANGUP,
    Console,
    Event,
    Events,
    Outcome,
    Presses,
    attempt_aside,
    expired,
    hang_watch,
    next_event,
    not_kept,
    trapped_signals,
)
from trainlaunch.run.base.multi_node import containers_of_run, deciding
from trainlaunch.run.base.run_evidence import with_plan, without_secrets
from trainlaunch.run.base.run_query import is_mine
from trainlaunch.run.base.secret_values import Redactor, values_here
from trainlaunch.run.base.slurm import slurm_task
from trainlaunch.run.base.store import Followed, Following, Starting, Tell
from trainlaunch.run.base.wait_reading import of_nodes
from trainlaunch.run.data_wait_limit import judged_by_wait, observed
from trainlaunch.run.following import end_evidence, follow_to_end, to_paste
from trainlaunch.run.gpu_holds import reserve_gpus
from trainlaunch.run.in_front import ForegroundSupervisor, passed_on
from trainlaunch.run.keeper import at_logout, remove_when_due, spawn_keeper, with_absolute_path
from trainlaunch.run.run_lock import holding, keeper_of, new_run_id
from trainlaunch.run.run_record import RunRecord
from trainlaunch.run.supervise import Supervisor


def start(backend: Backend, plan: LaunchPlan, console: Console, how: Starting, tell: Tell) -> int:
    """Start it and return its exit code, 0 of a detached one. Raises TargetUnavailable."""
    if how.detach and not plan.target_record.starts_container and slurm_task() is not None:
        why = "Slurm ends what a task leaves behind"
        fix = "leave out --detach: sbatch itself runs in the background"
        raise UsageError([Diagnostic("TL118", "a detached run would end with this task of Slurm's", fix, why=why)])
    plan = observed(plan)
    if how.as_shell:
        backend.serve(how.terminal)
    backend.prepare(plan, _unsaid if how.as_shell and not plan.target_record.starts_container else console.say)
    _remove_expired(backend, console.say)
    claim = nullcontext() if how.share_gpus else _claim(plan, how.typed, console.say)
    if how.detach:
        return _detached(backend, plan, console, tell, claim, run=how.run or new_run_id())
    return _kept(backend, plan, console, tell, claim, how)


def _unsaid(_: str) -> None:
    """Say nothing: a run from a command line sets nothing that this host could lack."""


def _claim(plan: LaunchPlan, typed: str, say: Say) -> AbstractContextManager[None]:
    """Return what keeps a job's GPUs its own while it is started; nothing where it has none."""
    if not plan.gpus:
        return nullcontext()
    return reserve_gpus(plan, typed, say)


def _remove_expired(backend: Backend, say: Say) -> None:
    """Remove the caller's runs that ended longer than their ttl_after_finished ago; no controller would."""
    now = time.time()
    for run in backend.expiring():
        if run.expired(now) and is_mine(run.owner):
            backend.remove(run.id)
            RunRecord(run.run).remove()
            say(expired(run.name, run.ttl or 0))


def _kept(
    backend: Backend,
    plan: LaunchPlan,
    console: Console,
    tell: Tell,
    claim: AbstractContextManager[None],
    how: Starting,
) -> int:
    redacted, run = Redactor(values_here(plan).items()), how.run or new_run_id()
    kept = RunRecord(run, redact=redacted)
    kept.keep(with_absolute_path(plan))

    def say(text: str) -> None:
        console.say(text)
        kept.say(text)

    def leave(why: str) -> None:
        for each in () if console.is_left() or how.as_shell else _logout_words(plan):
            say(each)
        console.on_hangup(why)

    keeping = replace(console, say=say, detect_hang=hang_watch(plan, redacted), on_hangup=leave)
    events: Events[Event] = Events()
    with holding(run) as held:
        with trapped_signals(events):  # to the last line: a signal that comes twice must not take the job's code
            follows = Supervisor if how.terminal is None else ForegroundSupervisor
            with nullcontext() if how.terminal is None else how.terminal.typing(functools.partial(passed_on, events)):
                outcome = follows(backend, plan, keeping, events, kept).run(run, claim)
            held.over = True
            tell(_followed(outcome, plan, redacted))
        exit_code, why = judged_by_wait(outcome, how.max_data_wait)
        if why:
            say(why)
        if console.is_left():
            remove_when_due(backend, plan, run)
    return exit_code


def _logout_words(plan: LaunchPlan) -> tuple[str, ...]:
    return at_logout().words(uses_hosts_shm=not plan.target_record.private_shm)


def _followed(outcome: Outcome, plan: LaunchPlan, redacted: Redactor) -> Followed:
    """Return how and why a run ended, and what is kept of it."""
    if outcome.evidence is None:
        return Followed(outcome.exit_code)
    verdict = ""
    if outcome.exit_code and outcome.evidence.exit_code:
        node = "" if outcome.node is None else f" on node {outcome.node}"
        verdict = f"the job ended with exit code {outcome.exit_code}{node}"
    kept = "container is" if plan.nodes == 1 else "containers are"
    kept = kept if plan.target_record.starts_container else "log is"
    them = "it" if plan.nodes == 1 else "them"
    kept = f"its {kept} kept; `trainlaunch down {plan.job.name}` removes {them}"
    evidence = without_secrets(with_plan(outcome.evidence, plan), redacted)
    ended = Followed(outcome.exit_code, evidence, verdict, (kept,))
    return ended._replace(data_wait=outcome.data_wait, seconds=outcome.seconds)


def _detached(
    backend: Backend, plan: LaunchPlan, console: Console, tell: Tell, claim: AbstractContextManager[None], *, run: str
) -> int:
    with claim:
        RunRecord(run).keep(with_absolute_path(plan))
        backend.begin(backend.create(plan, run, 1)).close()
    problem = spawn_keeper(plan, run)
    remarks = _logout_words(plan)
    if problem:
        off = not_kept(plan.job.max_attempts, plan.job.active_deadline)
        again = f"`trainlaunch attach {plan.job.name}` tries again"
        remarks = (*remarks, f"no supervisor runs, so {off}: {problem}; {again}")
    tell(Followed(0, started=plan.name, remarks=remarks))
    return 0


def run_apart(backend: Backend, plan: LaunchPlan, console: Console, events: Events[Event], typed: str) -> Outcome:
    """Run it to its end, or until a signal of `events`, and remove its containers. Raises TargetUnavailable."""
    redact, run = Redactor(values_here(plan).items()), new_run_id()
    backend.prepare(plan, console.say)
    _say_left(backend, plan.measures, console.say)
    with holding(run), trapped_signals(events), _removing(backend, plan, run, console.say):
        outcome = Supervisor(backend, plan, console, events).run(run, _claim(plan, typed, console.say))
    if outcome.evidence is None:
        return outcome
    return replace(outcome, evidence=without_secrets(outcome.evidence, redact), stopped_by=outcome.evidence.stopped_by)


def _say_left(backend: Backend, job: str, say: Say) -> None:
    """Name runs that measured the same job and that nobody keeps: a SIGKILL of their trainlaunch left them."""
    left = dict.fromkeys(each.job for each in backend.listed() if each.measures == job and keeper_of(each.run) is None)
    for each in left:
        say(f"{each} measured the same job and was not removed; `trainlaunch down {each}` removes it")


@contextmanager
def _removing(backend: Backend, plan: LaunchPlan, run: str, say: Say) -> Iterator[None]:
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
            RunRecord(run).remove()
        except LaunchError as cause:
            say(f"something of {plan.job.name} is left; `trainlaunch down {plan.job.name}` removes it: {cause}")


def follow(
    backend: Backend, containers: tuple[ContainerInfo, ...], console: Console, how: Following, tell: Tell
) -> int:
    """Follow containers of an attempt and of those after it. Raises TargetUnavailable."""
    if how.take_up is not None:
        return _attached(backend, containers, console, how, tell)
    show = None if how.part is None else console.show
    running = [each for each in containers if each.status == "running"]
    if show is None and running:
        names = ", ".join(each.name for each in running)
        console.say(f"waiting for job {running[0].job} ({running[0].noun} {names}) to end")
    code, containers = follow_to_end(backend, containers, show, console.say, how.part)
    tell(_told_by_target(backend, containers, code))
    return code


def _attached(
    backend: Backend, containers: tuple[ContainerInfo, ...], console: Console, how: Following, tell: Tell
) -> int:
    if how.take_up is not None and not all(each.ended for each in containers):
        how.take_up(containers[0])
    events: Events[Event] = Events()
    with trapped_signals(events):
        viewer = Viewer(backend, containers, console, events, stops=how.stop_on_interrupt)
        code = viewer.show()
        if code is None:
            tell(Followed(EXIT_INTERRUPTED, goes_on="the job goes on"))
            return EXIT_INTERRUPTED
        tell(_told_by_target(backend, viewer.containers, code))
    return code


def _told_by_target(backend: Backend, containers: tuple[ContainerInfo, ...], code: int) -> Followed:
    evidence = end_evidence(backend, containers)
    paste = "" if evidence is None else to_paste(backend, containers, evidence)
    kept, now = RunRecord(containers[0].run), deciding(containers)
    waited = of_nodes(kept.data_wait(each.attempt, each.node) for each in containers)
    now = backend.inspect(now.id) or now
    seconds = max(0.0, now.finished - now.started)
    return Followed(code, evidence, remarks=(paste,) if paste else (), data_wait=waited, seconds=seconds)


class Viewer:
    """Shows a run that somebody else keeps; `containers` are those of its last attempt."""

    def __init__(
        self,
        backend: Backend,
        containers: tuple[ContainerInfo, ...],
        console: Console,
        events: Events[Event],
        *,
        stops: bool,
    ) -> None:
        self.containers = containers
        self._backend = backend
        self._console = console
        self._events = events
        self._stops = stops
        self._stopping = False
        self._presses = Presses()
        self._failure: LaunchError | None = None

    def show(self) -> int | None:
        """Print all attempts from here on; return the exit code of the last, None where an interrupt left it."""
        threading.Thread(target=self._follow, daemon=True).start()
        while True:
            event = next_event(self._events)
            if event.kind == "exit":
                return event.code
            if event.kind == "trouble":
                self._console.say(event.value)
            elif self._failure is not None:
                raise self._failure
            elif event.kind == HANGUP or not self._stops:
                return None
            else:
                self._interrupted(event)

    def _follow(self) -> None:
        try:
            code, self.containers = follow_to_end(self._backend, self.containers, self._console.show, self._console.say)
        except LaunchError as cause:
            self._failure = cause
            self._events.put(Event("failed"))
        else:
            self._events.put(Event("exit", code=code))

    def _interrupted(self, event: Event) -> None:
        """Stop the attempt that runs now; a second Ctrl-C kills it."""
        second, one = self._presses.is_second(event), self.containers[0]
        now = containers_of_run(self._backend.runs(one.job, one.run), one.run) if one.run else self.containers
        running = [each for each in now if each.status == "running"]
        if not self._stopping:
            self._stopping = True
            self._console.say(f"{event.value}: stopping the job; Ctrl-C again kills it")
            for each in running:
                attempt_aside(self._events, functools.partial(self._backend.stop, each.id))
        elif second:
            self._console.say("killing it")
            for each in running:
                attempt_aside(self._events, functools.partial(self._backend.kill, each.id))
