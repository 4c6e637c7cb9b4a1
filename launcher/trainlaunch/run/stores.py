"""Which store holds the runs of some targets, and that of this host: its runs, and what commands do with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

from trainlaunch.errors import TargetUnavailable
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.backends import backend_named, docker_backend
from trainlaunch.run.base.backend import Backend, Chunk, ContainerInfo, Say
from trainlaunch.run.base.console import Console, Event, Events, Outcome
from trainlaunch.run.base.container_shell import new_token, running_argv
from trainlaunch.run.base.log_position import LogPart
from trainlaunch.run.base.multi_node import at_once, by_node, deciding, newest_of, run_of, runs_among
from trainlaunch.run.base.run_query import Run, RunQuery, no_such_attempt, no_such_run
from trainlaunch.run.base.store import (
    ClusterPlace,
    Following,
    Live,
    RunReport,
    RunRow,
    RunStatus,
    RunStore,
    Starting,
    Tell,
)
from trainlaunch.run.following import end_evidence, printed
from trainlaunch.run.machine_status import look_into, report, status_of
from trainlaunch.run.machine_up import follow, run_apart, start
from trainlaunch.run.run_record import RunRecord
from trainlaunch.targets import KUBERNETES
from trainlaunch.units import format_size

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.evidence import Evidence
    from trainlaunch.run.docker.backend import DockerBackend

LISTED_SECONDS = 1.0  # an engine's list has whole seconds


class MachineStore:
    """The backends of some targets; one that can't be reached is left out, and said by `unreachable`."""

    options = elsewhere = ""
    schedules = False

    def __init__(self, backends: dict[str, Backend], unreachable: dict[str, TargetUnavailable]) -> None:
        self._backends = backends
        self.unreachable = unreachable

    @property
    def place(self) -> str:
        """What was looked at, as a sentence starts with it."""
        known = [each.place for each in self._backends.values()]
        return known[0] if len(known) == 1 else "this host"

    def runs(self) -> tuple[Run, ...]:
        """Return all runs as their targets list them, newest first. Raises where no target can be reached."""
        found: list[Run] = []
        for target, backend in list(self._backends.items()):
            try:
                found += runs_among(backend.listed(), target)
            except TargetUnavailable as away:
                del self._backends[target]
                self.unreachable[target] = away
        if not found:
            self._raise_unreachable()
        return tuple(sorted(found, key=_created, reverse=True))

    def left_out(self, *, found: bool) -> tuple[str, ...]:
        """Return which targets could not be reached."""
        return tuple(f"runs are left out: {away}" for away in self.unreachable.values())

    def none_found(self, asked: RunQuery, known: Sequence[Run], owner: str | None, say: Say) -> TargetUnavailable:
        """Return the error: a target that can't be reached, where one is, since the run may be there."""
        for away in self.unreachable.values():
            return away
        fix = "start it with `trainlaunch up JOB`, or list what there is with `trainlaunch ps`"
        name = asked.job or asked.text
        return TargetUnavailable([no_such_run(self.place, name, {each.job for each in known}, fix=fix, owner=owner)])

    def newest(self, runs: Sequence[Run]) -> Run:
        """Return the newest: of those that a list puts into one second the targets are asked."""
        latest = [each for each in runs if each.created > runs[0].created - LISTED_SECONDS]
        of_targets = {each.target: each for each in reversed(latest)}  # a target's own order is right
        return max(self._described([*of_targets.values()]), key=_created, default=runs[0])

    def rows(self, runs: Sequence[Run]) -> list[RunRow]:
        """Return their rows: a list tells enough, but not which of several nodes failed first."""
        unclear = [each for each in runs if _failed(each) > 1]
        clear = [each for each in runs if _failed(each) < 2]
        found = sorted([*clear, *self._described(unclear, whole=True)], key=_created, reverse=True)
        return [_row(each) for each in found]

    def statuses(self, runs: Sequence[Run]) -> list[RunStatus]:
        """Return them with all attempts, each container described."""
        return [status_of(each) for each in sorted(self._described(runs, whole=True), key=_created, reverse=True)]

    def report(self, run: Run, say: Say) -> RunReport:
        """Look at the containers of its newest attempt, and at who keeps it."""
        return report(self._backends[run.target], next(self._described([run], whole=True), run))

    def print_log(self, run: Run, part: LogPart, attempt: int | None, show: Callable[[Chunk], None], say: Say) -> None:
        """Show both streams; of several nodes one after the other."""
        containers = newest_of(run.held) if attempt is None else _of_attempt(run, attempt)
        for chunk in printed(self._backends[run.target], containers, part):
            show(chunk)

    def follow(self, run: Run, console: Console, how: Following, tell: Tell) -> int:
        """Follow it, the attempts that its supervisor adds included."""
        return follow(self._backends[run.target], newest_of(run.held), console, how, tell)

    def start(self, plan: LaunchPlan, console: Console, how: Starting, tell: Tell) -> int:
        """Start it and keep it to its end, or leave a supervisor with it."""
        return start(self._backend(plan), plan, console, how, tell)

    def run_apart(self, plan: LaunchPlan, console: Console, events: Events[Event], typed: str) -> Outcome:
        """Run it once, and remove its containers."""
        return run_apart(self._backend(plan), plan, console, events, typed)

    def _backend(self, plan: LaunchPlan) -> Backend:
        self._raise_unreachable()
        return self._backends[plan.target]

    def evidence(self, run: Run, say: Say) -> Evidence | None:
        """Return what is known of its end, secrets taken out."""
        return end_evidence(self._backends[run.target], newest_of(run.held))

    def live(self, run: Run, say: Say) -> list[Live]:
        """Look into those of its containers that run, all at once."""
        backend = self._backends[run.target]
        running = [each for each in newest_of(run.held) if not each.ended]
        return list(at_once(lambda each: look_into(backend, each), running))

    def enter(self, runs: Sequence[Run], command: Sequence[str], term: str | None, say: Say) -> int | None:
        """Run it in the first container that runs, or in the folder of a process of this host."""
        running = [each for each in runs if each.running]
        if not running:
            return None
        entered = running[0]
        container = next(each for each in newest_of(entered.held) if each.status == "running")
        if len(running) > 1 or len(newest_of(entered.held)) > 1:
            say(f"{container.noun} {container.name} of run {entered.id}, on {entered.target}")
        argv, token = running_argv(command), new_token()
        if not container.where.starts_container:
            from trainlaunch.run.local.host_shell import in_folder_of

            return in_folder_of(container.pid, argv, token)
        from trainlaunch.run.docker.shell import run_in_container

        on_engine = cast("DockerBackend", self._backends[entered.target])  # as each that starts containers here
        return run_in_container(on_engine.engine, container.id, argv, token, term=term)

    def own_shell(self, plan: LaunchPlan, term: str | None, say: Say) -> int:
        """Run it in a container without the job's network, or as a process of this host."""
        token = new_token()
        if not plan.target_record.starts_container:
            from trainlaunch.run.local.host_shell import run_shell

            return run_shell(plan, token, say)
        from trainlaunch.run.docker.shell import run_own

        return run_own(docker_backend, plan, token, term, say)

    def remove(self, runs: Sequence[Run], say: Say) -> None:
        """Stop within the grace period, then remove every container with its anonymous volumes."""
        for each in runs:
            _remove(self._backends[each.target], each, say)

    def remove_left(self, asked: RunQuery, known: Sequence[Run], owner: str | None, say: Say) -> None:
        """Raise TargetUnavailable: a run leaves nothing here that no list shows."""
        raise self.none_found(asked, known, owner, say)

    def close(self) -> None:
        """Close all connections."""
        for each in self._backends.values():
            each.close()

    def _described(self, runs: Sequence[Run], *, whole: bool = False) -> Iterator[Run]:
        """Yield runs with all that is known of their newest attempts, or of all attempts, those that are gone left out.

        That takes one call for each container.
        """
        asked = [(run, each.id) for run in runs for each in (run.held if whole else newest_of(run.held))]
        now = at_once(lambda each: self._backends[each[0].target].inspect(each[1]), asked)
        known = {(run.target, name): found for (run, name), found in zip(asked, now, strict=True)}
        for run in runs:
            left = [known.get((run.target, each.id), each) for each in run.held]
            if there := tuple(filter(None, left)):
                yield run_of(run.target, there)

    def _raise_unreachable(self) -> None:
        """Raise what keeps a target from being reached, where one is: a run that isn't found may be there."""
        for away in self.unreachable.values():
            raise away


def _of_attempt(run: Run, number: int) -> tuple[ContainerInfo, ...]:
    """Return the containers of one attempt, by node. Raises TargetUnavailable (TL510) where it has none."""
    found = by_node(each for each in run.held if each.attempt == number)
    if not found:
        numbers = {each.attempt for each in run.held}
        raise TargetUnavailable([no_such_attempt(f"run {run.id} of job {run.job}", number, numbers)])
    return found


def _failed(run: Run) -> int:
    """Return how many nodes of its newest attempt ended with another exit code than 0."""
    return sum(bool(each.exit_code) for each in newest_of(run.held))


def _row(run: Run) -> RunRow:
    end = deciding(newest_of(run.held))
    shm = format_size(end.shm_size) if end.private_shm else end.ipc_mode
    return RunRow(run, end.status, end.exit_code, shm)


def _remove(backend: Backend, run: Run, say: Say) -> None:
    running = [each for each in run.held if each.status == "running"]
    for container in running:
        say(f"stopping {container.name}")
    # At once: the nodes of a job have one grace period, not one after the other.
    at_once(backend.stop, [each.id for each in running], most=len(running))
    for container in run.held:
        backend.remove(container.id)
        RunRecord(container.run).remove()
        say(f"removed {container.name}")


def _created(run: Run) -> float:
    return run.created


def run_store(targets: Sequence[str], place: ClusterPlace, say: Say) -> RunStore:
    """Return the store over the runs of some targets: one of clusters stands by itself, and `place` says which.

    `say` hears which engine stands in for Docker's. Raises TargetUnavailable.
    """
    if KUBERNETES.name in targets:
        from trainlaunch.run.kubernetes.store import ClusterStore

        return ClusterStore(place)
    backends: dict[str, Backend] = {}
    unreachable: dict[str, TargetUnavailable] = {}
    for target in targets:
        try:
            backends[target] = backend_named(target, say)
        except TargetUnavailable as away:
            unreachable[target] = away
    return MachineStore(backends, unreachable)
