"""Pods that completed and whose preflight never spoke, by their logs as the node keeps them."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from trainlaunch.run.base.log_position import LogPart
from trainlaunch.run.base.preflight_line import PREFLIGHT, lacks_preflight
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.logs import PodLog
from trainlaunch.run.kubernetes.pods import Pod


def is_silent(cluster: Cluster, pods: Sequence[Pod]) -> bool:
    """Return whether a run that completed has a pod that never came to its preflight; False where nobody can know."""
    return any(each.fronted and each.exit_code == 0 and _lacks_preflight(cluster, each) for each in pods)


def _lacks_preflight(cluster: Cluster, pod: Pod) -> bool:
    pieces: list[tuple[bool, bytes]] = []
    refusals: list[str] = []
    stop = threading.Event()

    def write(data: bytes) -> None:
        pieces.extend((False, line) for line in data.splitlines(keepends=True))
        if PREFLIGHT in data:
            stop.set()

    PodLog(cluster, pod, write, lambda: pod, refusals.append, LogPart(timestamps=True)).read(follow=False, stop=stop)
    return not refusals and lacks_preflight(pieces, pod.started, pod.finished)
