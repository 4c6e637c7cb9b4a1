"""What the verbs do on target kubernetes: which cluster and job are meant, and the verbs about runs there."""

from __future__ import annotations

import argparse
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from launcher.cli.streams import Streams
from launcher.cli.target_options import job_file
from launcher.cli.terminal import Screen
from launcher.targets import KUBERNETES

if TYPE_CHECKING:
    from launcher.job.spec import JobSpec
    from launcher.run.kubernetes.client import Cluster
    from launcher.run.kubernetes.follow import End, Wishes
    from launcher.run.kubernetes.objects import Object, Reference


@dataclass(frozen=True, slots=True)
class Asked:
    """A job and where it is asked for; `options` are those that name the place again in another command."""

    cluster: Cluster
    job: str
    options: str

    def command(self, verb: str) -> str:
        """Return the command line of another verb about this job."""
        return f"trainlaunch {verb} {self.job} {self.options}"


@contextlib.contextmanager
def asked_cluster(args: argparse.Namespace, *, job: JobSpec | None, name: str) -> Iterator[Asked]:
    """Give the cluster that the arguments mean, and close its connections afterwards; nothing is contacted yet."""
    from launcher.run.kubernetes.client import Cluster
    from launcher.run.kubernetes.kubeconfig import find_access

    access = find_access(args.context)
    stated = args.namespace or (job.kubernetes.namespace if job is not None else None)
    cluster = Cluster(access, stated or access.namespace)
    options = f"--target {KUBERNETES.name}" + (f" --context {args.context}" if args.context else "")
    options += f" --namespace {cluster.namespace}" if cluster.namespace != access.namespace else ""
    with contextlib.closing(cluster):
        yield Asked(cluster, name, options)


@contextlib.contextmanager
def asked(args: argparse.Namespace) -> Iterator[Asked]:
    """Give the cluster and the job that a verb about runs means."""
    job = job_file(args.job, policy=args.policy, target=KUBERNETES.name)
    with asked_cluster(args, job=job, name=args.job if job is None else job.name) as place:
        yield place


def logs(args: argparse.Namespace, streams: Streams) -> int:
    """Print what the pods of the job's newest run printed; with --follow end as the job does."""
    from launcher.run.kubernetes.follow import Wishes

    if args.follow:
        with asked(args) as place:
            return _said(follow(place, streams, Wishes()), place, streams)
    with asked(args) as place:
        _print_logs(place, streams)
    return 0


def _print_logs(place: Asked, streams: Streams) -> None:
    from launcher.run.kubernetes.logs import PodLog
    from launcher.run.kubernetes.output import prefixed
    from launcher.run.kubernetes.pods import Pod
    from launcher.run.kubernetes.runs import newest_run, pods_of_run, runs_several

    screen = Screen(streams)
    run = newest_run(place.cluster, place.job, screen.say)
    several = runs_several(place.cluster, run.thing)
    never = threading.Event()
    pods = pods_of_run(place.cluster, run)
    for pod in (each for each in pods if each.ran):

        def write(data: bytes, pod: Pod = pod) -> None:
            screen.out(prefixed(data, pod) if several else data)

        PodLog(place.cluster, pod, write, lambda pod=pod: pod, screen.say).read(follow=False, stop=never)  # type: ignore[misc]
    if not any(pod.ran for pod in pods):
        screen.say(f"no pod of {run.main} has printed anything: {run.result.state}")


def wait(args: argparse.Namespace, streams: Streams) -> int:
    """Wait for the end of the job's newest run and end with its exit code."""
    from launcher.run.kubernetes.follow import Wishes

    with asked(args) as place:
        return _said(follow(place, streams, Wishes(logs=False)), place, streams)


def follow(place: Asked, streams: Streams, wishes: Wishes) -> End:
    """Follow the job's newest run to its end."""
    from launcher.run.kubernetes.follow import Follower
    from launcher.run.kubernetes.runs import newest_run
    from launcher.run.supervise import Console, Event, Events, trapped_signals

    screen = Screen(streams)
    run = newest_run(place.cluster, place.job, screen.say)
    if not wishes.logs and not run.result.ended:
        screen.say(f"waiting for job {run.job} ({run.main} in {place.cluster.words}) to end")
    events: Events[Event] = Events()
    console = Console(screen.out, screen.err, screen.say, lambda _: "")
    with trapped_signals(events):
        return Follower(place.cluster, run, console, events, wishes=wishes).follow()


def _said(end: End, place: Asked, streams: Streams) -> int:
    """Say what an exit code alone does not, and return it."""
    if end.error is not None:
        streams.say(f"trainlaunch: the job may go on: {place.command('logs -f')}")
        raise end.error
    if end.how == "removed":
        streams.say("trainlaunch: somebody removed the job while it was waited for")
    if end.how == "ended" and end.exit_code == 125 and end.pod is None:
        why = end.result.words or end.result.reason if end.result else ""
        streams.say(f"trainlaunch: no process of it left an exit code{f': {why}' if why else ''}")
    return end.exit_code


def down(args: argparse.Namespace, streams: Streams) -> int:
    """Delete everything that carries the job's label, and nothing else; returns when it is gone."""
    from launcher.errors import TargetUnavailable
    from launcher.run.kubernetes.objects import JOB_LABEL, delete, wait_until_gone
    from launcher.run.kubernetes.runs import made_by, no_such_run

    with asked(args) as place:
        cluster, selector = place.cluster, f"{JOB_LABEL}={place.job}"
        made = made_by(cluster, selector, streams.say)
        if not made:
            raise TargetUnavailable([no_such_run(cluster, place.job, streams.say)])
        streams.say(f"deleting job {place.job} in {cluster.words}")
        tops = _tops(made)
        for each in tops:
            delete(cluster, each)
        kinds = dict.fromkeys([*(place.kind for place, _ in made), "Job", "Pod"])

        def left() -> list[Reference]:
            return [place for place, _ in made_by(cluster, selector, lambda _: None, kinds=kinds)]

        wait_until_gone(cluster, left, grace=_longest_grace(made), say=streams.say)
        for each in tops:
            streams.say(f"removed {each}")
    return 0


def _tops(made: list[tuple[Reference, Object]]) -> list[Reference]:
    """Return what no other object takes along when it goes."""
    from launcher.run.kubernetes.objects import WORKLOADS, owned

    uids = {thing["metadata"].get("uid") for _, thing in made}

    def by_another(place: Reference, thing: Object) -> bool:
        if place.kind == "Pod" or place.kind not in WORKLOADS:
            return owned(thing)
        return any(each.get("uid") in uids for each in thing["metadata"].get("ownerReferences") or ())

    return [place for place, thing in made if not by_another(place, thing)]


def _longest_grace(made: list[tuple[Reference, Object]]) -> int:
    specs = (thing.get("spec") or {} for place, thing in made if place.kind == "Pod")
    return max((int(spec.get("terminationGracePeriodSeconds") or 30) for spec in specs), default=30)
