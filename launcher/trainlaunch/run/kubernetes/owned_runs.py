"""The runs of a cluster with whose they are, as RUN names them."""

from __future__ import annotations

import re
from typing import NamedTuple

from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.identity import Identity, owner_of, who_am_i
from trainlaunch.run.kubernetes.objects import ForbiddenKinds
from trainlaunch.run.kubernetes.runs import ClusterRun, all_runs
from trainlaunch.targets import KUBERNETES

_HASHED = re.compile(r".-([0-9a-f]{8})$")


class OwnedRun(NamedTuple):
    """A run and who asks about it."""

    run: ClusterRun
    me: Identity

    @property
    def job(self) -> str:
        """Its job."""
        return self.run.job

    @property
    def id(self) -> str:
        """The hash that its name ends with; the whole name where `--name` or stable_name fixed it."""
        found = _HASHED.search(self.run.main.name)
        return found[1] if found else self.run.main.name

    @property
    def names(self) -> frozenset[str]:
        """Its object's name, and its id."""
        return frozenset({self.run.main.name, self.id})

    @property
    def owner(self) -> str:
        """Who made it by `up`, as the cluster names that user; empty where it was applied by hand."""
        return owner_of(self.run.thing)

    @property
    def is_mine(self) -> bool:
        """Whether the caller made it; one without an owner is somebody else's."""
        return self.me.owns(self.run.thing)

    @property
    def target(self) -> str:
        """Target kubernetes."""
        return KUBERNETES.name

    @property
    def measures(self) -> str:
        """Nothing: a run that measures leaves no object."""
        return ""

    @property
    def running(self) -> bool:
        """Whether it may still start or run pods."""
        return not self.run.result.ended

    @property
    def created(self) -> float:
        """When its workload object was made."""
        return self.run.created

    @property
    def state(self) -> str:
        """How its workload stands."""
        return self.run.result.state


def owned_runs(cluster: Cluster, unlisted: ForbiddenKinds) -> tuple[OwnedRun, ...]:
    """Return the runs of all jobs in the namespace, newest first; `unlisted` gets the kinds that may not be listed."""
    runs = all_runs(cluster, None, unlisted)
    me = who_am_i(cluster)
    return tuple(OwnedRun(each, me) for each in runs)
