"""`trainlaunch shell` on target kubernetes: a Job of its own that holds a pod like the job's, or a pod that runs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from trainlaunch.cli.arguments.target_options import job_file
from trainlaunch.cli.output.streams import Streams
from trainlaunch.cli.output.terminal import Screen
from trainlaunch.cli.runs.cluster import cluster_job, named_cluster
from trainlaunch.cli.verbs.shell import kind_of_terminal, plan_for_shell, until_signalled
from trainlaunch.errors import TargetUnavailable
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.targets import KUBERNETES

if TYPE_CHECKING:
    from trainlaunch.run.kubernetes.client import Cluster


def shell(args: argparse.Namespace, streams: Streams) -> int:
    """Start a pod like the job's, or enter one that runs."""
    if job_file(args) is None:
        return until_signalled(lambda: _into_run(args, streams))
    args.target = KUBERNETES.name
    plan = plan_for_shell(args, streams)
    with named_cluster(args, namespace=plan.job.kubernetes.namespace, name=plan.job.name) as place:
        return until_signalled(lambda: _of_its_own(place.cluster, plan, streams))


def _of_its_own(cluster: Cluster, plan: LaunchPlan, streams: Streams) -> int:
    from trainlaunch.run.base.container_shell import join, new_token, planned_argv
    from trainlaunch.run.kubernetes.shell import opened, own_pod

    screen, token, term = Screen(streams), new_token(), kind_of_terminal()
    screen.say(f"{cluster.access.words} ({cluster.access.server}), namespace {cluster.namespace}")
    with (
        own_pod(cluster, plan, token, screen.say) as pod,
        opened(cluster, pod, planned_argv(plan), token, term=term) as command,
    ):
        return join(command, terminal=term is not None)


def _into_run(args: argparse.Namespace, streams: Streams) -> int:
    from trainlaunch.cli.runs.cluster_run import newest_run
    from trainlaunch.run.base.container_shell import join, new_token, running_argv
    from trainlaunch.run.base.wording import nothing_runs
    from trainlaunch.run.kubernetes.runs import pods_of_run
    from trainlaunch.run.kubernetes.shell import opened

    screen, term = Screen(streams), kind_of_terminal()
    with cluster_job(args) as place:
        run = newest_run(args, place.cluster, screen.say)
        pods = [pod for pod in pods_of_run(place.cluster, run) if pod.state == "running"]
        if not pods:
            raise TargetUnavailable([nothing_runs(args.job)])
        pod = min(pods, key=lambda each: each.node_index or 0)
        if len(pods) > 1:
            screen.say(f"pod {pod.name}, the first of {len(pods)} that run")
        argv, token = running_argv(args.command), new_token()
        with opened(place.cluster, pod, argv, token, term=term) as command:
            return join(command, terminal=term is not None)
