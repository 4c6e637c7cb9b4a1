"""The local target: one process of this host an attempt, without an engine; its state in a folder of the user's."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from trainlaunch.errors import TargetUnavailable
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.rules.plan.target_effects import not_applied_on_a_host
from trainlaunch.run.base.backend import Chunk, ContainerInfo, Position, Say, Session, ShmReading
from trainlaunch.run.base.caller_terminal import CallerStreams, CallerTerminal, TypedKeys
from trainlaunch.run.base.log_position import TimePosition
from trainlaunch.run.base.private_files import UnusableState, state_root
from trainlaunch.run.base.run_query import may_move
from trainlaunch.run.base.sessions import LoggedSession
from trainlaunch.run.base.shm_reading import OwnChecks, is_stalled
from trainlaunch.run.base.wait_reading import WaitPage, open_page
from trainlaunch.run.local.follow import LocalSession, frames_of, recorded_code, wait_for_end
from trainlaunch.run.local.log import part_of_log
from trainlaunch.run.local.process_spec import comparison, local_findings, process_spec, start_keeper
from trainlaunch.run.local.processes import (
    PROC,
    ProcessIdentity,
    kill_marked,
    own_folder,
    read_host_shm,
    remove_own_folder,
    run_id,
    send,
)
from trainlaunch.run.local.record import Facts, describe, described, folders_described, identities, run_pids, state_of
from trainlaunch.run.local.refusals import name_taken, not_ours, not_started
from trainlaunch.run.local.state import RunFolder, make_root, refuse_alien_state, state_is_writable

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.container_snapshot import ContainerSnapshot

SECONDS_TO_DIE = 20.0  # after SIGKILL; the supervisor takes 10 of them for what is left


class LocalBackend:
    """Runs jobs as processes of this host."""

    place = "this host"
    sample_seconds = 1.0

    def __init__(self, root: Path | None = None, *, say: Say = lambda _: None) -> None:
        self._root = root or state_root()
        self._plans: dict[str, LaunchPlan] = {}
        self._say = say
        self._caller: CallerStreams | None = None
        self._checks = OwnChecks()
        self._begun: dict[str, tuple[ProcessIdentity, Facts]] = {}  # what stops a run whose folder somebody removed

    def serve(self, terminal: TypedKeys | None) -> None:
        """Give the next run the caller's own streams."""
        self._caller = terminal.streams if isinstance(terminal, CallerTerminal) else CallerStreams()

    def prepare(self, plan: LaunchPlan, say: Say) -> None:
        """Check this host, then the name; say once what has no effect here."""
        refuse_alien_state(self._root)
        findings = local_findings(plan)
        if findings:
            raise TargetUnavailable(findings)
        if (holder := self._holder(plan.name)) is not None and not may_move(holder, plan):
            raise TargetUnavailable([name_taken(plan, holder)])
        for finding in not_applied_on_a_host.check(plan):
            say(finding.message)
        say(comparison(plan))

    def create(self, plan: LaunchPlan, run: str, attempt: int) -> str:
        """Rename an ended earlier run of this job, then take its name, both under a lock."""
        with self._locked():
            if (holder := self._holder(plan.name)) is not None:
                if not may_move(holder, plan):
                    raise TargetUnavailable([name_taken(plan, holder)])
                self._move_away(holder)
            folder = self._folder(f"{plan.job.name}/{run}-{attempt}")
            with state_is_writable(folder.path):
                try:
                    folder.make(describe(plan, run=run, attempt=attempt))
                except OSError:
                    self._clear(folder)
                    raise
        self._plans[folder.id] = plan
        return folder.id

    def begin(self, container: str) -> Session:
        """Start the supervisor, and with it the job; the log is read from its first byte."""
        folder, plan = self._folder(container), self._plans.pop(container)
        run, _, attempt = folder.path.name.rpartition("-")
        try:
            name, number = run_id(plan.name, run, int(attempt)), int(attempt)
            spec = process_spec(plan, run_id=name, attempt=number, folder=folder.path, caller=self._caller)
            problem = start_keeper(folder, spec)
            spec.streams.close()
            if problem:
                raise TargetUnavailable([not_started(plan, problem)])  # noqa: TRY301 - it leaves nothing either
        except TargetUnavailable:  # or a secret's source is gone since the checks
            self.remove(container)
            raise
        known, facts = identities(folder), self._facts(folder)
        if known is not None and facts is not None:
            self._begun[container] = (known[1], facts)
        return LocalSession(folder, self._say)

    def resume(self, container: str) -> Session:
        """Read the log from its first byte, and wait for the recorded end."""
        return LocalSession(self._folder(container), self._say)

    def stop(self, container: str) -> None:
        """Send the stop signal to the job's first process, as an engine does; SIGKILL after the grace period."""
        folder = self._folder(container)
        facts = self._facts(folder)
        if facts is None or not self._send(folder, facts.stop_signal):
            return
        if wait_for_end(folder, facts.grace) is None:
            self.kill(container)
            wait_for_end(folder, SECONDS_TO_DIE)

    def interrupt(self, container: str) -> None:
        """Send SIGINT to all processes in front, as a terminal does."""
        if (known := identities(self._folder(container))) is not None and known[1].alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(known[1].pid, signal.SIGINT)

    def kill(self, container: str) -> None:
        """Send SIGKILL to the job's first process; its supervisor kills what it leaves; we do where that is gone."""
        folder = self._folder(container)
        if self._send(folder, signal.SIGKILL):
            keeper = identities(folder)
            if keeper is None or not keeper[0].alive:
                kill_marked(folder.path)

    def _facts(self, folder: RunFolder) -> Facts | None:
        with contextlib.suppress(UnusableState):
            if (known := described(folder)) is not None:
                return known
        return self._begun[folder.id][1] if folder.id in self._begun else None

    def _send(self, folder: RunFolder, number: int) -> bool:
        state, known = self._usable(folder), identities(folder)
        if state is None or known is None:
            begun = self._begun.get(folder.id)
            if begun is not None:
                send(begun[0], number)
            return begun is not None
        if state.status != "running":
            return False
        with contextlib.suppress(OSError):  # a full or read-only disk keeps no run from being stopped
            folder.note_signal(number)
        try:
            send(known[1], number)
        except PermissionError as refused:
            raise TargetUnavailable([not_ours(state, number)]) from refused
        return True

    def inspect(self, container: str) -> ContainerInfo | None:
        """Describe a run; the health command is run where it is running."""
        return self._usable(self._folder(container), health=True)

    def checked(self, container: str) -> ContainerInfo | None:
        """Run the health command when the next check is due."""
        known = (self._folder(container).description() or {}).get("health") or {}
        if not self._checks.due(container, known.get("interval", 0)) or (state := self.inspect(container)) is None:
            return None
        ill = self._checks.unhealthy(container, failed=state.health == "unhealthy", retries=known.get("retries", 1))
        return state if ill or state.health != "unhealthy" or is_stalled(state.health_output) else None

    def signals(self, container: ContainerInfo) -> tuple[int, ...]:
        """Return what was sent through trainlaunch; what `kill` sends leaves no trace on a host."""
        with contextlib.suppress(UnusableState):
            return self._folder(container.id).signals()
        return ()

    def secrets(self, _container: ContainerInfo) -> tuple[tuple[str, str], ...]:
        """Return none: its supervisor has taken them out of the log."""
        return ()

    def expiring(self) -> tuple[ContainerInfo, ...]:
        """Look through all: they are files."""
        refuse_alien_state(self._root)
        some = folders_described(self._folders(), lambda known: known.get("ttl") is not None)
        return tuple(filter(None, map(self._usable, some)))

    def runs(self, job: str | None = None, run: str | None = None) -> tuple[ContainerInfo, ...]:
        """Return the runs of this host, newest first; one that can't be used is said and left out."""
        return tuple(filter(None, (self.inspect(each.id) for each in self.listed(job) if run in {None, each.run})))

    def listed(self, job: str | None = None) -> tuple[ContainerInfo, ...]:
        """Describe them without running their health commands."""
        refuse_alien_state(self._root)
        found = (self._usable(each) for each in self._folders() if job in {None, each.path.parent.name})
        return tuple(sorted((each for each in found if each), key=lambda each: each.created, reverse=True))

    def follow(self, container: str, position: Position) -> Session:
        """Read the log from a position, and wait for the recorded end; its supervisor ends what it leaves."""
        return LoggedSession(self, container, position)

    def logs(self, container: str, *, follow: bool, position: Position | None = None) -> Iterator[Chunk]:
        """Yield the log's frames, or the lines of a part of it."""
        folder = self._folder(container)
        if isinstance(position, TimePosition):
            return part_of_log(folder, position, follow=follow)
        return frames_of(folder, follow=follow)

    def wait(self, container: str) -> int | None:
        """Block until it ended; None where nobody knows its code any more."""
        return recorded_code(self._folder(container), self._say)

    def remove(self, container: str) -> None:
        """Remove an ended run's folder, and processes that outlived their supervisor.

        Raises TargetUnavailable (TL514) where the folder can't be removed.
        """
        folder = self._folder(container)
        kill_marked(folder.path)
        with contextlib.suppress(UnusableState):
            remove_own_folder(_run_id(folder))
        self._clear(folder)
        if folder.path.exists():
            with state_is_writable(folder.path):
                shutil.rmtree(folder.path)  # what keeps it

    def _clear(self, folder: RunFolder) -> None:
        shutil.rmtree(folder.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            folder.path.parent.rmdir()

    def read_shm(self, container: ContainerInfo) -> ShmReading | None:
        """Read the host's /dev/shm and the run's own share and workers."""
        folder = self._folder(container.id)
        pids = run_pids(folder)
        with contextlib.suppress(UnusableState):
            return read_host_shm(pids, folder.peak()) if pids else None
        return None

    def wait_page(self, container: ContainerInfo) -> WaitPage | None:
        """Open it below the run's folder in the host's /dev/shm."""
        with contextlib.suppress(UnusableState):
            return open_page(own_folder(_run_id(self._folder(container.id))), PROC)
        return None

    def look(self, container: ContainerInfo) -> ContainerSnapshot | None:
        """Look at the run's processes on this host."""
        from trainlaunch.run.base.live_snapshot import look_here

        return look_here("/", pids) if (pids := run_pids(self._folder(container.id))) else None

    def close(self) -> None:
        """Nothing is open."""

    def _folder(self, container: str) -> RunFolder:
        return RunFolder(self._root / container)

    def _folders(self) -> list[RunFolder]:
        try:
            return [RunFolder(run) for job in self._root.iterdir() if job.is_dir() for run in job.iterdir()]
        except OSError:
            return []

    def _usable(self, folder: RunFolder, *, health: bool = False) -> ContainerInfo | None:
        """Return a run as it is now; None where it is gone, or can't be used, which is said."""
        try:
            return state_of(folder, health=health)
        except UnusableState as why:
            self._say(f"local run {folder.id} is left out: {why}; `rm -r {shlex.quote(str(folder.path))}` removes it")
            return None

    def _holder(self, name: str) -> ContainerInfo | None:
        named = folders_described(self._folders(), lambda known: known.get("name") == name)
        return next(filter(None, map(self._usable, named)), None)

    def _move_away(self, holder: ContainerInfo) -> None:
        folder = self._folder(holder.id)
        suffix = holder.run if holder.attempt == 1 else f"{holder.run}-{holder.attempt}"
        folder.describe({**(folder.description() or {}), "name": f"{holder.name}-{suffix}"})

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of all names; the kernel lets go of it when its holder dies."""
        with state_is_writable(self._root):
            make_root(self._root)
            lock = (self._root / ".lock").open("w")
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _run_id(folder: RunFolder) -> str:
    return str(((folder.description() or {}).get("health") or {}).get("run_id", ""))
