"""What the verbs do on target kubernetes: which cluster and job are meant, and the verbs about runs there."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainlaunch.cli.arguments.target_options import job_file
from trainlaunch.cli.output.streams import Streams
from trainlaunch.cli.output.terminal import Screen, write_bytes
from trainlaunch.cli.runs.runs import hints, say_diagnoses
from trainlaunch.targets import KUBERNETES

if TYPE_CHECKING:
    from trainlaunch.plan.launch_plan import LaunchPlan
    from trainlaunch.run.kubernetes.client import Cluster
    from trainlaunch.run.kubernetes.follow import End, FollowOptions


@dataclass(frozen=True, slots=True)
class ClusterJob:
    """A job and the cluster that it is looked for in; `options` name the place again in another command."""

    cluster: Cluster
    job: str
    options: str

    def command(self, verb: str) -> str:
        """Return the command line of another verb about this job."""
        return f"trainlaunch {verb} {self.job} {self.options}"


@contextlib.contextmanager
def named_cluster(args: argparse.Namespace, *, namespace: str | None, name: str) -> Iterator[ClusterJob]:
    """Give the cluster that the arguments mean, and close its connections afterwards; nothing is contacted yet.

    `namespace` is the job's, where it states one.
    """
    from trainlaunch.run.kubernetes.client import Cluster
    from trainlaunch.run.kubernetes.kubeconfig import find_access

    access = find_access(args.context)
    cluster = Cluster(access, args.namespace or namespace or access.namespace)
    options = f"--target {KUBERNETES.name}" + (f" --context {args.context}" if args.context else "")
    options += f" --namespace {cluster.namespace}" if cluster.namespace != access.namespace else ""
    with contextlib.closing(cluster):
        yield ClusterJob(cluster, name, options)


@contextlib.contextmanager
def cluster_job(args: argparse.Namespace) -> Iterator[ClusterJob]:
    """Give the cluster and the job that a verb about runs means."""
    job = job_file(args, target=KUBERNETES.name)
    namespace = None if job is None else job.namespace
    with named_cluster(args, namespace=namespace, name=args.job if job is None else job.name) as place:
        yield place


def logs(args: argparse.Namespace, streams: Streams) -> int:
    """Print what the pods of the job's newest run printed; with --follow end as the job does."""
    from trainlaunch.cli.arguments.log_options import part_of
    from trainlaunch.cli.runs.cluster_run import newest_run
    from trainlaunch.run.kubernetes.follow import FollowOptions
    from trainlaunch.run.kubernetes.output import print_logs

    part = part_of(args)
    with cluster_job(args) as place:
        if args.follow:
            return _followed(args, place, streams, FollowOptions(part=part))
        say = Screen(streams).say
        found = newest_run(args, place.cluster, say)
        print_logs(place.cluster, found, _whole(streams), say, part=part, attempt=args.attempt)
    return 0


def _whole(streams: Streams) -> Callable[[bytes], None]:
    """Return what writes to stdout and raises UsageError where not all of it can be written."""

    def write(data: bytes) -> None:
        with streams.writable():
            write_bytes(streams.out, data)

    return write


def attach(args: argparse.Namespace, streams: Streams) -> int:
    """Follow the job's newest run; its controller keeps it, whoever follows."""
    from trainlaunch.run.kubernetes.follow import FollowOptions

    with cluster_job(args) as place:
        options = FollowOptions(stop_on_interrupt=args.stop_on_interrupt)
        return _followed(args, place, streams, options)


def wait(args: argparse.Namespace, streams: Streams) -> int:
    """Wait for the end of the job's newest run and end with its exit code."""
    from trainlaunch.run.kubernetes.follow import FollowOptions

    with cluster_job(args) as place:
        return _followed(args, place, streams, FollowOptions(logs=False))


def down(args: argparse.Namespace, streams: Streams) -> int:
    """Delete a run of the caller's with all that it made, and nothing else; returns when it is gone."""
    from trainlaunch.cli.runs.cluster_run import remove

    with cluster_job(args) as place:
        remove(args, place.cluster, streams.say)
    return 0


def _followed(args: argparse.Namespace, place: ClusterJob, streams: Streams, options: FollowOptions) -> int:
    """Follow the job's newest run to its end, say why it ended, and return its exit code."""
    from trainlaunch.cli.runs.cluster_run import newest_run
    from trainlaunch.run.base.console import Console
    from trainlaunch.run.base.log_position import WHOLE
    from trainlaunch.run.base.signals import Event, Events, trapped_signals
    from trainlaunch.run.kubernetes.exit_status import evidence_of_end, evidence_of_ended
    from trainlaunch.run.kubernetes.follow import Follower
    from trainlaunch.run.kubernetes.liveness import with_liveness

    screen = Screen(streams)
    run = newest_run(args, place.cluster, screen.say)
    if not options.logs and not run.result.ended:
        screen.say(f"waiting for job {run.job} ({run.main} in {place.cluster.words}) to end")
    events: Events[Event] = Events()
    console = Console(screen.out, screen.err, screen.say, lambda _: "")
    with trapped_signals(events):
        follower = Follower(place.cluster, run, console, events, options=options)
        end = follower.follow()
        if end.how in {"ended", "stuck"}:
            read_whole = options.logs and options.part == WHOLE
            if read_whole:
                evidence = with_liveness(place.cluster, evidence_of_end(end, follower.output), end.pod)
            else:
                evidence = evidence_of_ended(place.cluster, end, screen.say)
            say_diagnoses(evidence, streams, screen.line)
    return _said(end, place, streams)


def no_code_words(end: End) -> str:
    """Return the sentence for an end without an exit code of a process that failed."""
    why = (end.result.words or end.result.reason) if end.result else ""
    return f"the job failed, and {end.no_code}{f' ({why})' if why else ''}"


def _said(end: End, place: ClusterJob, streams: Streams) -> int:
    """Say what an exit code alone does not, and return it."""
    if end.how == "detached":
        streams.say(f"trainlaunch: {end.stopped_by}: the job goes on without me")
        hints(place.command, streams.say)
    if end.error is not None:
        streams.say(f"trainlaunch: the job may go on: {place.command('logs -f')}")
        raise end.error
    if end.how == "removed":
        streams.say("trainlaunch: somebody removed the job while it was waited for")
    if end.how == "stuck" and end.wait is not None:
        streams.say(f"trainlaunch: {end.wait.given_up}")
    if end.no_code:
        streams.say(f"trainlaunch: {no_code_words(end)}")
    return end.exit_code


@contextlib.contextmanager
def cluster_of(args: argparse.Namespace, plan: LaunchPlan) -> Iterator[Cluster | None]:
    """Give the cluster that the arguments name for a plan's target, None for a target on this machine."""
    if plan.target_record.on_this_machine:
        yield None
        return
    with named_cluster(args, namespace=plan.job.kubernetes.namespace, name=plan.job.name) as place:
        yield place.cluster
