"""The runs on this machine, over several of its targets, and what verbs do with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.base.backend import Backend, Chunk, Say
from trainlaunch.run.base.log_position import LogPart
from trainlaunch.run.base.multi_node import at_once
from trainlaunch.run.base.run_query import RunQuery
from trainlaunch.run.base.store import Following, Live, RanApart, RunReport, RunRow, RunStatus, Starting, Tell
from trainlaunch.run.machine_runs import MachineRun, runs_among
from trainlaunch.units import format_size

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.evidence import Evidence
    from trainlaunch.plan.launch_plan import LaunchPlan
    from trainlaunch.run.base.console import Console, Event, Events
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
        return known[0] if len(known) == 1 else "this machine"

    def runs(self) -> tuple[MachineRun, ...]:
        """Return all runs as their targets list them, newest first. Raises where no target can be reached."""
        found: list[MachineRun] = []
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

    def none_found(
        self, asked: RunQuery, known: Sequence[MachineRun], owner: str | None, say: Say
    ) -> TargetUnavailable:
        """Return the error: a target that can't be reached, where one is, since the run may be there."""
        from trainlaunch.run.base.wording import no_such_run

        for away in self.unreachable.values():
            return away
        fix = "start it with `trainlaunch up JOB`, or list what there is with `trainlaunch ps`"
        name = asked.job or asked.text
        return TargetUnavailable([no_such_run(self.place, name, {each.job for each in known}, fix=fix, owner=owner)])

    def newest(self, runs: Sequence[MachineRun]) -> MachineRun:
        """Return the newest: of those that a list puts into one second the targets are asked."""
        latest = [each for each in runs if each.created > runs[0].created - LISTED_SECONDS]
        of_targets = {each.target: each for each in reversed(latest)}  # a target's own order is right
        return max(self._described([*of_targets.values()]), key=_created, default=runs[0])

    def rows(self, runs: Sequence[MachineRun]) -> list[RunRow]:
        """Return their rows: a list tells enough, but not which of several nodes failed first."""
        unclear = [each for each in runs if each.failed > 1]
        clear = [each for each in runs if each.failed < 2]
        found = sorted([*clear, *self._described(unclear, whole=True)], key=_created, reverse=True)
        return [_row(each) for each in found]

    def statuses(self, runs: Sequence[MachineRun]) -> list[RunStatus]:
        """Return them with all attempts, each container described."""
        from trainlaunch.run.machine_status import status_of

        return [status_of(each) for each in sorted(self._described(runs, whole=True), key=_created, reverse=True)]

    def report(self, run: MachineRun, say: Say) -> RunReport:
        """Look at the containers of its newest attempt, and at who keeps it."""
        from trainlaunch.run.machine_status import report

        return report(self._backends[run.target], next(self._described([run], whole=True), run))

    def print_log(
        self, run: MachineRun, part: LogPart, attempt: int | None, show: Callable[[Chunk], None], say: Say
    ) -> None:
        """Show both streams; of several nodes one after the other."""
        from trainlaunch.run.following import printed

        containers = run.newest if attempt is None else run.of_attempt(attempt)
        for chunk in printed(self._backends[run.target], containers, part):
            show(chunk)

    def follow(self, run: MachineRun, console: Console, how: Following, tell: Tell) -> int:
        """Follow it, the attempts that its keeper adds included."""
        from trainlaunch.run.viewer import follow

        return follow(self._backends[run.target], run.newest, console, how, tell)

    def start(self, plan: LaunchPlan, console: Console, how: Starting, tell: Tell) -> int:
        """Start it and keep it to its end, or leave a keeper with it."""
        from trainlaunch.run.machine_up import start

        return start(self._backend(plan), plan, console, how, tell)

    def run_apart(self, plan: LaunchPlan, console: Console, events: Events[Event], typed: str) -> RanApart:
        """Run it once, and remove its containers."""
        from trainlaunch.run.machine_up import run_apart

        return run_apart(self._backend(plan), plan, console, events, typed)

    def _backend(self, plan: LaunchPlan) -> Backend:
        self._raise_unreachable()
        return self._backends[plan.target]

    def evidence(self, run: MachineRun, say: Say) -> Evidence | None:
        """Return what is known of its end, secrets taken out."""
        from trainlaunch.run.following import end_evidence

        return end_evidence(self._backends[run.target], run.newest)

    def live(self, run: MachineRun, say: Say) -> list[Live]:
        """Look into those of its containers that run, all at once."""
        from trainlaunch.run.machine_status import look_into

        backend = self._backends[run.target]
        running = [each for each in run.newest if not each.ended]
        return list(at_once(lambda each: look_into(backend, each), running))

    def enter(self, runs: Sequence[MachineRun], command: Sequence[str], term: str | None, say: Say) -> int | None:
        """Run it in the first container that runs, or in the folder of a process of this host."""
        from trainlaunch.run.base.container_shell import new_token, running_argv

        running = [each for each in runs if each.running]
        if not running:
            return None
        entered = running[0]
        container = next(each for each in entered.newest if each.status == "running")
        if len(running) > 1 or len(entered.newest) > 1:
            say(f"{container.noun} {container.name} of run {entered.id}, on {entered.target}")
        argv, token = running_argv(command), new_token()
        if not container.where.starts_container:
            from trainlaunch.run.local.shell import in_folder_of

            return in_folder_of(container.pid, argv, token)
        from trainlaunch.run.base.container_shell import join
        from trainlaunch.run.docker.shell import opened

        on_engine = cast("DockerBackend", self._backends[entered.target])  # as each that starts containers here
        with opened(on_engine.engine, container.id, argv, token, term=term) as opened_command:
            return join(opened_command, terminal=term is not None)

    def own_shell(self, plan: LaunchPlan, term: str | None, say: Say) -> int:
        """Run it in a container without the job's network, or as a process of this host."""
        from trainlaunch.run.base.container_shell import new_token

        token = new_token()
        if not plan.target_record.starts_container:
            from trainlaunch.run.local.shell import run_shell

            return run_shell(plan, token, say)
        from trainlaunch.run.backends import docker_backend
        from trainlaunch.run.docker.shell import run_own

        return run_own(docker_backend, plan, token, term, say)

    def remove(self, runs: Sequence[MachineRun], say: Say) -> None:
        """Stop within the grace period, then remove every container with its anonymous volumes."""
        for each in runs:
            _remove(self._backends[each.target], each, say)

    def remove_left(self, asked: RunQuery, known: Sequence[MachineRun], owner: str | None, say: Say) -> None:
        """Raise TargetUnavailable: a run leaves nothing here that no list shows."""
        raise self.none_found(asked, known, owner, say)

    def close(self) -> None:
        """Close all connections."""
        for each in self._backends.values():
            each.close()

    def _described(self, runs: Sequence[MachineRun], *, whole: bool = False) -> Iterator[MachineRun]:
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

    def _raise_unreachable(self) -> None:
        """Raise what keeps a target from being reached, where one is: a run that isn't found may be there."""
        for away in self.unreachable.values():
            raise away


def machine_store(targets: Iterable[str], say: Say) -> MachineStore:
    """Return the store over some targets of this machine."""
    from trainlaunch.run.backends import backend_named

    backends: dict[str, Backend] = {}
    unreachable: dict[str, TargetUnavailable] = {}
    for target in targets:
        try:
            backends[target] = backend_named(target, say)
        except TargetUnavailable as away:
            unreachable[target] = away
    return MachineStore(backends, unreachable)


def _row(run: MachineRun) -> RunRow:
    end = run.deciding
    shm = format_size(end.shm_size) if end.private_shm else end.ipc_mode
    return RunRow(run, end.status, end.exit_code, shm)


def _remove(backend: Backend, run: MachineRun, say: Say) -> None:
    from trainlaunch.run.run_record import RunRecord

    running = [each for each in run.containers if each.status == "running"]
    for container in running:
        say(f"stopping {container.name}")
    # At once: the nodes of a job have one grace period, not one after the other.
    at_once(backend.stop, [each.id for each in running], most=len(running))
    for container in run.containers:
        backend.remove(container.id)
        RunRecord(container.run).remove()
        say(f"removed {container.name}")


def _created(run: MachineRun) -> float:
    return run.created
