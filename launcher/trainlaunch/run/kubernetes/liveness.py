"""What a liveness probe had against a pod that its kubelet ended for it: only its events say so."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.base.watch import UNHEALTHY
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.pods import Pod, last_of_nodes

_FAILED = "liveness probe failed: "


def with_liveness(cluster: Cluster, evidence: Evidence, pod: Pod | None) -> Evidence:
    """Return the evidence of a pod's end with what its liveness probe had against it, where that ended it."""
    words = stopped_as_unhealthy(cluster, pod) if pod is not None else ""
    return replace(evidence, unhealthy=words) if words else evidence


def stopped_as_unhealthy(cluster: Cluster, pod: Pod) -> str:
    """Return what a kubelet had against a pod that it ended for its liveness probe; empty for another end.

    Of a pod that is not started again it says `Stopping container NAME`, as for a deletion, an eviction and a deadline:
    those leave a trace in the pod itself. One that ended by itself has no such event.
    """
    if not (pod.has_liveness and pod.ended) or pod.deleting or pod.disrupted or pod.reason or pod.oom_killed:
        return ""
    events = _events(cluster, pod)
    if not any(each.get("reason") == "Killing" for each in events):
        return ""
    words = [" ".join(str(each.get("message", "")).split()) for each in events]
    said = [each[len(_FAILED) :] for each in words if each.lower().startswith(_FAILED)]
    return said[-1].removeprefix(UNHEALTHY) if said else ""


def stalled_and_content(cluster: Cluster, pods: Sequence[Pod]) -> tuple[Pod, str] | None:
    """Return a pod that was stopped as unhealthy and ended with 0, and a sentence; None where there is none."""
    for pod in last_of_nodes(pods):
        if pod.exit_code == 0 and (words := stopped_as_unhealthy(cluster, pod)):
            why = f"was stopped as unhealthy ({words}) and ended with exit code 0: it did not finish"
            return pod, f"pod {pod.name} {why}"
    return None


def _events(cluster: Cluster, pod: Pod) -> list[Mapping[str, Any]]:
    """Return the events of its training container; none where they can't be read. Sidecars are stopped later."""
    path = f"/api/v1/namespaces/{cluster.namespace}/events"
    with contextlib.suppress(TargetUnavailable):
        selector = f"involvedObject.uid={pod.uid},involvedObject.fieldPath=spec.containers{{{pod.container}}}"
        found = cluster.get(path, (("fieldSelector", selector),), what="list events")
        return found.get("items") or []
    return []
