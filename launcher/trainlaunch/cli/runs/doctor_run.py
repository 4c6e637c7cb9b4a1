"""`trainlaunch doctor JOB`: what a run tells of itself, dead or alive, wherever it is."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from trainlaunch.cli.arguments.run_argument import newest_run
from trainlaunch.cli.arguments.target_options import means_a_cluster
from trainlaunch.cli.output.streams import Streams
from trainlaunch.cli.runs.cluster import cluster_job
from trainlaunch.cli.runs.doctor_output import Running, tell, tell_live
from trainlaunch.cli.runs.run_end import end_evidence, redaction
from trainlaunch.targets import KUBERNETES
from trainlaunch.units import counted

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.container_snapshot import ContainerSnapshot
    from trainlaunch.diagnose.base.evidence import Evidence
    from trainlaunch.run.base.backend import Backend, ContainerInfo
    from trainlaunch.run.kubernetes.client import Cluster
    from trainlaunch.run.kubernetes.pods import Pod
    from trainlaunch.run.kubernetes.runs import ClusterRun

MAX_PODS = 8  # that are looked into, one after the other


def explain_run(args: argparse.Namespace, streams: Streams) -> int:
    """Explain the newest run of a job, of several nodes the one that failed first."""
    from trainlaunch.run.base.at_once import at_once

    args.job = args.run  # as the verbs about runs name it
    if means_a_cluster(args):
        return _of_cluster(args, streams)
    with newest_run(args, streams) as (backend, found):
        containers = found.newest
        evidence = end_evidence(backend, containers)
        if evidence is not None:
            return tell(evidence, streams, output=args.output)
        running = [each for each in containers if not each.ended]
        looked_at = at_once(lambda each: _running(backend, each), running)  # a look takes two seconds each
        return tell_live(looked_at, streams, output=args.output)


def _evidence(backend: Backend, container: ContainerInfo) -> Evidence:
    """Return what a container that runs shows: its size, and its whole log."""
    from trainlaunch.run.base.run_evidence import evidence_of, read_whole_log, without_secrets

    log, facts = read_whole_log(backend, container)
    evidence = replace(evidence_of(container, log=log), scanned=facts, job=container.job)
    return without_secrets(evidence, redaction(backend, [container]))


def _running(backend: Backend, container: ContainerInfo) -> Running:
    """Look at one container that runs."""
    evidence = replace(_evidence(backend, container), look=backend.look(container))
    shm = evidence.look.shm if evidence.look is not None else None
    if shm is not None and shm.size and evidence.private_shm:
        evidence = replace(evidence, shm_size=shm.size)
    return Running(_state(container, evidence.look), container.health == "unhealthy", evidence)


def _state(container: ContainerInfo, look: ContainerSnapshot | None) -> str:
    parts = [f"{container.noun} {container.name} runs"]
    if container.health:
        parts.append(container.health + (f" ({container.health_output.strip()})" if container.health_output else ""))
    if look is not None:
        parts.append(counted(len(look.workers), "DataLoader worker"))
    return ", ".join(parts)


def _of_cluster(args: argparse.Namespace, streams: Streams) -> int:
    """Explain the newest run on a cluster: one that goes on by its log and a look inside, an ended one by its pod."""
    from trainlaunch.cli.runs.cluster_run import newest_run as newest_cluster_run
    from trainlaunch.run.kubernetes.exit_status import evidence_of_ended
    from trainlaunch.run.kubernetes.follow import end_of_run
    from trainlaunch.run.kubernetes.runs import pods_of_run

    with cluster_job(args) as place:
        run = newest_cluster_run(args, place.cluster, streams.say)
        pods = pods_of_run(place.cluster, run)
        if run.result.ended:
            end = end_of_run(run.result, pods)
            return tell(evidence_of_ended(place.cluster, end, streams.say), streams, output=args.output)
        return tell_live(list(_running_pods(place.cluster, run, pods, streams)), streams, output=args.output)


def _running_pods(cluster: Cluster, run: ClusterRun, pods: Sequence[Pod], streams: Streams) -> Iterator[Running]:
    """Yield the run with the log of all its pods, then those of its pods that run, each with a look inside."""
    from trainlaunch.diagnose import new_scanner
    from trainlaunch.diagnose.base.evidence import Evidence
    from trainlaunch.run.kubernetes.exec import look_inside
    from trainlaunch.run.kubernetes.output import print_logs

    scanner = new_scanner()
    print_logs(cluster, run, scanner.feed, streams.say)
    scanned = scanner.facts()
    running = [each for each in pods if each.state == "running"]
    if len(running) > MAX_PODS:
        streams.say(f"looking at {MAX_PODS} of {len(running)} pods that run")
    for pod in running[:MAX_PODS]:
        evidence = Evidence(
            None,
            scanned=scanned,
            target=KUBERNETES.name,
            planned=pod.planned,
            shm_size=pod.shm_size,
            container=pod.name,
            namespace=cluster.namespace,
        )
        yield Running(f"pod {pod.name} runs", False, replace(evidence, look=look_inside(cluster, pod, streams.say)))
    if not running:
        yield Running(f"{run.main} goes on, and no pod of it runs", False, Evidence(None, scanned=scanned))
