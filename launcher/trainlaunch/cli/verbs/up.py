"""`trainlaunch up`: start the job on this engine, host or cluster and follow it to its end."""

from __future__ import annotations

import argparse
import shlex
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from trainlaunch.cli.arguments.job_arguments import (
    add_job_arguments,
    add_kind_argument,
    plan_of,
    say_findings,
    say_unsized,
)
from trainlaunch.cli.arguments.target_options import add_place_arguments, refuse_place_elsewhere
from trainlaunch.cli.output.streams import Streams
from trainlaunch.cli.output.terminal import Screen
from trainlaunch.cli.runs.runs import backend_of, hang_watch, hints, say_diagnoses
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render import render
from trainlaunch.rules import check_plan
from trainlaunch.run.base.backend import Backend
from trainlaunch.run.base.run_query import is_mine

if TYPE_CHECKING:
    from trainlaunch.run.base.console import Outcome
    from trainlaunch.run.base.secret_values import Redactor

EXAMPLES = (
    "trainlaunch up job.yaml",
    "trainlaunch up job.yaml --detach --set data_loader.batch_size=64",
    "trainlaunch up job.yaml --target kubernetes --namespace research",
)
EXIT_CODES = (
    "the job's own; 125 for anything before its first process or when no code exists, 75 and 78 from the preflight "
    "(this machine, the files), 128+n when signal n ended it, 130 when Ctrl-C detached from a cluster"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_job_arguments(parser)
    add_kind_argument(parser)
    parser.add_argument("-d", "--detach", action="store_true", help="start it and return; print its name")
    add_place_arguments(parser)
    parser.add_argument(
        "--share-gpus",
        action="store_true",
        help="docker, compose, local: start on a GPU that a running job of ours has",
    )
    parser.add_argument(
        "--replace", action="store_true", help="kubernetes: delete the same job first where it is there already"
    )
    parser.add_argument(
        "--stop-on-interrupt", action="store_true", help="kubernetes: let Ctrl-C stop the job; it detaches otherwise"
    )


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Check, start, follow, explain."""
    plan = plan_of(args)
    refuse_place_elsewhere(args, plan.target)
    if not plan.target_record.on_this_machine:
        from trainlaunch.cli.verbs.cluster_up import up

        return up(args, plan, streams)
    if plan.job.patch is not None:
        _verify_patch(plan)
    say_findings(check_plan(plan), streams)
    say_unsized(plan, streams)
    with backend_of(plan.target) as backend:
        backend.prepare(plan, Screen(streams).say)
        _remove_expired(backend, streams)
        start = _detached if args.detach else _followed
        return start(backend, plan, streams, _claim_of(args, plan, streams))


def _claim_of(args: argparse.Namespace, plan: LaunchPlan, streams: Streams) -> AbstractContextManager[None]:
    """Return what keeps a job's GPUs its own while it is started; nothing where it has none, or shares them."""
    if not plan.gpus or args.share_gpus:
        return nullcontext()
    from trainlaunch.run.gpu_holds import reserve_gpus

    typed = shlex.join(["trainlaunch", *args.words])
    return reserve_gpus(plan, typed, lambda text: streams.say(f"trainlaunch: {text}"))


def _verify_patch(plan: LaunchPlan) -> None:
    """Raise JobFileRejected where the job's patch would change what the plan decided, as `render` does."""
    from trainlaunch.verify import verify

    verify(plan, render(plan))


def _remove_expired(backend: Backend, streams: Streams) -> None:
    """Remove the caller's runs that ended longer than their ttl_after_finished ago; no controller would."""
    from trainlaunch.run.base.wording import expired
    from trainlaunch.run.run_store import RunStore

    now = time.time()
    for run in backend.expiring():
        if run.expired(now) and is_mine(run.owner):
            backend.remove(run.id)
            RunStore(run.run).remove()
            streams.say(f"trainlaunch: {expired(run.name, run.ttl or 0)}")


def _followed(backend: Backend, plan: LaunchPlan, streams: Streams, claim: AbstractContextManager[None]) -> int:
    from trainlaunch.cli.runs.keeper import remove_when_due, with_absolute_path
    from trainlaunch.run.base.console import Console
    from trainlaunch.run.base.secret_values import Redactor, values_here
    from trainlaunch.run.base.signals import Event, Events, trapped_signals
    from trainlaunch.run.logout import at_logout
    from trainlaunch.run.run_lock import holding, new_run_id
    from trainlaunch.run.run_store import RunStore
    from trainlaunch.run.supervise import Supervisor

    screen, redacted, run = Screen(streams), Redactor(values_here(plan).items()), new_run_id()
    kept = RunStore(run, redact=redacted)
    kept.keep(with_absolute_path(plan))

    def say(text: str) -> None:
        screen.say(text)
        kept.say(text)

    def leave(why: str) -> None:
        for each in () if screen.left else at_logout().words(uses_hosts_shm=not plan.target_record.private_shm):
            say(each)
        screen.leave(why)

    console = Console(screen.out, screen.err, say, hang_watch(plan, redacted), leave)
    events: Events[Event] = Events()
    with holding(run) as held:
        with trapped_signals(events):  # to the last line: a signal that comes twice must not take the job's code
            outcome = Supervisor(backend, plan, console, events, kept).run(run, claim)
            held.over = True
            _tell(outcome, plan, redacted, screen, streams)
        if screen.left:
            remove_when_due(backend, plan, run)
    return outcome.exit_code


def _tell(outcome: Outcome, plan: LaunchPlan, redacted: Redactor, screen: Screen, streams: Streams) -> None:
    """Say how and why a run ended, and what is kept of it."""
    from trainlaunch.run.base.run_evidence import without_secrets

    if outcome.evidence is None:
        return
    if outcome.exit_code and outcome.evidence.exit_code:
        node = "" if outcome.node is None else f" on node {outcome.node}"
        screen.say(f"the job ended with exit code {outcome.exit_code}{node}")
    say_diagnoses(without_secrets(outcome.evidence, redacted), streams, screen.line)
    kept = "container is" if plan.nodes == 1 else "containers are"
    kept = kept if plan.target_record.starts_container else "log is"
    them = "it" if plan.nodes == 1 else "them"
    screen.say(f"its {kept} kept; `trainlaunch down {plan.job.name}` removes {them}")


def _detached(backend: Backend, plan: LaunchPlan, streams: Streams, claim: AbstractContextManager[None]) -> int:
    from trainlaunch.cli.runs.keeper import spawn_keeper, with_absolute_path
    from trainlaunch.run.base.wording import not_kept
    from trainlaunch.run.logout import at_logout
    from trainlaunch.run.run_lock import new_run_id
    from trainlaunch.run.run_store import RunStore

    run = new_run_id()
    with claim:
        RunStore(run).keep(with_absolute_path(plan))
        backend.begin(backend.create(plan, run, 1)).close()
    problem = spawn_keeper(plan, run)
    streams.result(plan.name + "\n")
    job = plan.job.name
    hints(lambda verb: f"trainlaunch {verb} {job}", streams.say)
    for each in at_logout().words(uses_hosts_shm=not plan.target_record.private_shm):
        streams.say(each)
    if problem:
        off = not_kept(plan.job.max_attempts, plan.job.active_deadline)
        streams.say(f"no process keeps it, so {off}: {problem}; `trainlaunch attach {job}` tries again")
    return 0
