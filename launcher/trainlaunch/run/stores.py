"""Which store holds the runs of some targets: one namespace of a cluster, or this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainlaunch.run.base.backend import Say
from trainlaunch.run.base.store import ClusterPlace, RunStore
from trainlaunch.targets import KUBERNETES


def run_store(targets: Sequence[str], place: ClusterPlace, say: Say) -> RunStore[Any]:
    """Return the store over the runs of some targets: one of clusters stands by itself, and `place` says which.

    `say` hears which engine stands in for Docker's. Raises TargetUnavailable.
    """
    if KUBERNETES.name in targets:
        from trainlaunch.run.kubernetes.store import ClusterStore

        return ClusterStore(place)
    from trainlaunch.run.machine_store import machine_store

    return machine_store(targets, say)
