"""Whether a pod's container was ended by its liveness probe, which only events tell."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.base.watch import UNHEALTHY
from trainlaunch.run.kubernetes.api_errors import ApiRefused
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.pods import Pod

_BY_SIGNAL = 128
_FAILED = "liveness probe failed: "


def with_liveness(cluster: Cluster, evidence: Evidence, pod: Pod | None) -> Evidence:
    """Return the evidence of a pod's end with what its liveness probe had against it, where that ended it."""
    if pod is None or not pod.has_liveness or pod.deleting or (evidence.exit_code or 0) <= _BY_SIGNAL:
        return evidence
    words = [" ".join(str(each.get("message", "")).split()) for each in _events(cluster, pod)]
    ended = any("failed liveness probe" in each for each in words)
    said = [each[len(_FAILED) :] for each in words if each.lower().startswith(_FAILED)]
    return replace(evidence, unhealthy=said[-1].removeprefix(UNHEALTHY)) if ended and said else evidence


def _events(cluster: Cluster, pod: Pod) -> list[Mapping[str, Any]]:
    """Return the pod's events; none where they can't be read."""
    path = f"/api/v1/namespaces/{cluster.namespace}/events"
    with contextlib.suppress(ApiRefused, TargetUnavailable):
        found = cluster.get(path, (("fieldSelector", f"involvedObject.uid={pod.uid}"),), what="list events")
        return found.get("items") or []
    return []
