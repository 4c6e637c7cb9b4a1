"""Looks into a running pod by its own health command."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.base.backend import ContainerInfo, ShmReading
from trainlaunch.run.base.shm_reading import read_from_health
from trainlaunch.run.kubernetes.api_errors import FORBIDDEN
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.execution import ExecRefused
from trainlaunch.run.kubernetes.pods import Pod

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.container_snapshot import ContainerSnapshot

SAMPLE_SECONDS = 20.0
FAILURES_UNTIL_SAID = 3


def read_shm(cluster: Cluster, pod: Pod) -> ShmReading | None:
    """Return what a pod's health command reads now; None where it has none. Raises ExecRefused."""
    if not pod.health_command or pod.state != "running":
        return None
    return read_from_health(cluster.execute(pod.name, pod.container, pod.health_command))


def look_inside(cluster: Cluster, pod: Pod, say: Callable[[str], None]) -> ContainerSnapshot | None:
    """Look at a pod's processes by a command inside; None where that is not possible, which is said."""
    from trainlaunch.run.base.live_snapshot import command, read_snapshot

    try:
        return read_snapshot(cluster.execute(pod.name, pod.container, command()))
    except ExecRefused as cause:
        say(f"pod {pod.name} can't be looked into: {cause}")
        return None


class PodShm:
    """Readings of one pod for the watch of /dev/shm: a process in the pod each time, so seldom."""

    def __init__(self, cluster: Cluster, refused: Callable[[str], None], now: Callable[[Pod], Pod | None]) -> None:
        self._cluster = cluster
        self._refused = refused
        self._now = now
        self._failures = 0
        self.sample_seconds = cluster.clock.real(SAMPLE_SECONDS)

    def read_shm(self, container: Pod) -> ShmReading | None:
        """Read it; where that is forbidden say so, and raise TargetUnavailable so that nobody asks again.

        A container that ends refuses commands for a moment before its status says so, which is nothing to say.
        """
        now = self._now(container)
        if now is None or now.state != "running" or now.deleting:
            return None
        try:
            reading = read_shm(self._cluster, now)
        except ExecRefused as cause:
            self._failures += 1
            if cause.forbidden or self._failures == FAILURES_UNTIL_SAID:
                self._refused(str(cause))
            if cause.forbidden:
                raise TargetUnavailable([Diagnostic(FORBIDDEN, str(cause), "")]) from cause
            return None
        self._failures = 0
        return reading

    def checked(self, container: str) -> ContainerInfo | None:
        """Return nothing: a pod's health comes from its own events."""
        return None
