"""How a workload ended whose pods are gone: their kubelets' events say whether they were told to end before."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainlaunch.errors import TargetUnavailable
from trainlaunch.kinds import Kind, workloads
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.pods import Pod
from trainlaunch.run.kubernetes.removal_times import stamped
from trainlaunch.run.kubernetes.results import DELETED, Result, judged
from trainlaunch.run.kubernetes.runs import ClusterRun

_UNKNOWN = (
    "the cluster calls it complete, its pods are gone and no event of theirs can be read: whether it finished, or was "
    "told to end and saved, nobody knows"
)


def result_with_events(cluster: Cluster, run: ClusterRun, result: Result, pods: Sequence[Pod]) -> Result:
    """Return how a workload stands by its pods, and by events where no pod is left that finished.

    To its controller a pod that was told to end and exited with 0 is a success, and an eviction deletes that pod. What
    a kubelet does to a pod it says later than that it started it: without any event of theirs nobody knows.
    """
    result = judged(result, pods)
    if result.state != "complete" or any(pod.phase == "Succeeded" for pod in pods):
        return result
    begun, killed = _begun_and_killed(cluster, run)
    if not begun:
        return replace(result, state="unknown", words=_UNKNOWN)
    last = max(begun.values())  # what was told to end before that was started again
    name = next((pod for pod, at in killed.items() if at >= last and _before(at, result, alone=len(begun) == 1)), "")
    if not name:
        return result
    words = f"pod {name} was told to end and ended with exit code 0: what it saved is there, and it did not finish"
    return replace(result, state="failed", reason=DELETED, words=words)


def _before(at: float, result: Result, *, alone: bool) -> bool:
    """Whether a pod was told to end before its workload was complete; of several some are told to once it is."""
    return at < result.finished or (alone and at == result.finished)


def _begun_and_killed(cluster: Cluster, run: ClusterRun) -> tuple[dict[str, float], dict[str, float]]:
    """Return when the pods of a run were first spoken of, and when some were told to end, by name; none unread."""
    kind = workloads()[run.main.kind]
    begun: dict[str, float] = {}
    killed: dict[str, float] = {}
    for event in _events(cluster, kind):
        name, at = (
            str(event["involvedObject"].get("name")),
            stamped(event.get("firstTimestamp") or event.get("eventTime")),
        )
        rest = name.removeprefix(run.main.name)
        if at < run.created or rest == name or not re.fullmatch(kind.pod_names, rest):
            continue
        begun[name] = min(begun.get(name, at), at)
        if event.get("reason") == "Killing":
            killed[name] = at
    return begun, killed


def _events(cluster: Cluster, kind: Kind) -> list[Mapping[str, Any]]:
    """Return the events of the training containers of all pods in the namespace; none where they can't be read."""
    selector = f"involvedObject.kind=Pod,involvedObject.fieldPath=spec.containers{{{kind.container_name}}}"
    path = f"/api/v1/namespaces/{cluster.namespace}/events"
    try:
        return cluster.get(path, (("fieldSelector", selector),), what="list events").get("items") or []
    except TargetUnavailable:
        return []
