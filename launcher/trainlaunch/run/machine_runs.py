"""The runs on this machine, over all its targets: their containers put together, and the backends that hold them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.base.at_once import at_once
from trainlaunch.run.base.backend import Backend, ContainerInfo, Say
from trainlaunch.run.base.multi_node import by_node, deciding, newest_of
from trainlaunch.run.base.run_query import is_mine
from trainlaunch.run.base.wording import no_such_attempt
from trainlaunch.targets import TARGETS

ON_THIS_MACHINE = tuple(each.name for each in TARGETS.values() if each.on_this_machine)


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


class Machine:
    """The backends of some targets; one that can't be reached is left out, and said by `unreachable`."""

    def __init__(self, backends: dict[str, Backend], unreachable: dict[str, TargetUnavailable]) -> None:
        self._backends = backends
        self.unreachable = unreachable

    def backend(self, target: str) -> Backend:
        """Return the backend of a target that was reached."""
        return self._backends[target]

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets that were reached."""
        return tuple(self._backends)

    @property
    def places(self) -> str:
        """What was looked at, as a sentence starts with it."""
        known = [each.place for each in self._backends.values()]
        return known[0] if len(known) == 1 else "this machine"

    def runs(self, job: str | None = None) -> tuple[MachineRun, ...]:
        """Return the runs of one job or of all as their targets list them, newest first.

        Raises what keeps every target from being reached.
        """
        found: list[MachineRun] = []
        for target, backend in list(self._backends.items()):
            try:
                found += runs_among(backend.listed(job), target)
            except TargetUnavailable as away:
                self._left_out(target, away)
        if not found:
            self.raise_unreachable()
        return tuple(sorted(found, key=_created, reverse=True))

    def described(self, runs: Sequence[MachineRun], *, whole: bool = False) -> Iterator[MachineRun]:
        """Yield runs with all that is known of their newest attempts, or of all attempts, those that are gone left out.

        That takes one call for each container.
        """
        asked = [(run, each.id) for run in runs for each in (run.containers if whole else run.newest)]
        now = at_once(lambda each: self._backends[each[0].target].inspect(each[1]), asked)
        known = {(run.target, name): found for (run, name), found in zip(asked, now, strict=True)}
        for run in runs:
            left = [known.get((run.target, each.id), each) for each in run.containers]
            if there := tuple(filter(None, left)):
                yield replace(run, containers=there)

    def raise_unreachable(self) -> None:
        """Raise what keeps a target from being reached, where one is: a run that isn't found may be there."""
        for away in self.unreachable.values():
            raise away

    def _left_out(self, target: str, away: TargetUnavailable) -> None:
        del self._backends[target]
        self.unreachable[target] = away


@contextlib.contextmanager
def machine(targets: Iterable[str], say: Say) -> Iterator[Machine]:
    """Give the backends of some targets, and close their connections afterwards."""
    from trainlaunch.run.backends import backend_named

    with contextlib.ExitStack() as opened:
        backends: dict[str, Backend] = {}
        unreachable: dict[str, TargetUnavailable] = {}
        for target in targets:
            try:
                backends[target] = opened.enter_context(contextlib.closing(backend_named(target, say)))
            except TargetUnavailable as away:
                unreachable[target] = away
        yield Machine(backends, unreachable)


def _created(run: MachineRun) -> float:
    return run.created
