"""The runs on this machine, over all its targets: their containers put together, and the backends that hold them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.base.backend import ContainerInfo
from trainlaunch.run.base.multi_node import by_node, deciding, newest_of
from trainlaunch.run.base.run_query import is_mine
from trainlaunch.run.base.wording import no_such_attempt


@dataclass(frozen=True, slots=True)
class MachineRun:
    """One run: the containers of all its attempts and nodes, newest first."""

    target: str
    containers: tuple[ContainerInfo, ...]

    @property
    def newest(self) -> tuple[ContainerInfo, ...]:
        """The containers of its newest attempt, by node."""
        return newest_of(self.containers)

    def of_attempt(self, number: int) -> tuple[ContainerInfo, ...]:
        """Return the containers of one attempt, by node. Raises TargetUnavailable (TL510) where it has none."""
        found = by_node(each for each in self.containers if each.attempt == number)
        if not found:
            numbers = {each.attempt for each in self.containers}
            raise TargetUnavailable([no_such_attempt(f"run {self.id} of job {self.job}", number, numbers)])
        return found

    @property
    def deciding(self) -> ContainerInfo:
        """The container whose state is the run's."""
        return deciding(self.newest)

    @property
    def failed(self) -> int:
        """How many nodes of its newest attempt ended with another exit code than 0."""
        return sum(bool(each.exit_code) for each in self.newest)

    @property
    def job(self) -> str:
        """Its job."""
        return self.containers[0].job

    @property
    def id(self) -> str:
        """The id that its attempts share; one that was started by hand has its project's or container's name."""
        first = self.containers[0]
        return first.run or first.project or first.name

    @property
    def names(self) -> frozenset[str]:
        """The names of its containers and projects, and its whole id."""
        given = (name for each in self.containers for name in (each.name, each.project, _without_node(each)))
        return frozenset(filter(None, (self.id, *given)))

    @property
    def measures(self) -> str:
        """The job whose script it measures, empty for a job's own run."""
        return self.containers[0].measures

    @property
    def owner(self) -> str:
        """Whose it is, empty where it was started by hand."""
        return self.containers[0].owner

    @property
    def is_mine(self) -> bool:
        """Whether it is the caller's own."""
        return is_mine(self.owner)

    @property
    def running(self) -> bool:
        """Whether a container of it runs."""
        return any(each.status == "running" for each in self.containers)

    @property
    def created(self) -> float:
        """When its newest container was made."""
        return self.containers[0].created

    @property
    def state(self) -> str:
        """How it stands."""
        end = self.deciding
        return end.status if end.exit_code is None else f"{end.status} {end.exit_code}"


def _without_node(container: ContainerInfo) -> str:
    """Return the name that a node's container has from its run; empty where the run has one container."""
    return "" if container.node is None else container.name.removesuffix(f"-{container.node}")


def runs_among(containers: Iterable[ContainerInfo], target: str) -> tuple[MachineRun, ...]:
    """Return the runs that containers of one target belong to, newest first; `containers` are newest first."""
    by_run: dict[str, list[ContainerInfo]] = {}
    for each in containers:
        by_run.setdefault(f"{each.job} {each.run or each.project or each.id}", []).append(each)
    return tuple(MachineRun(target, tuple(each)) for each in by_run.values())
