"""The local target: one process of this host an attempt, without an engine; its state in a folder of the user's."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from launcher.diagnostics import Diagnostic
from launcher.errors import TargetUnavailable
from launcher.plan.launch_plan import LaunchPlan
from launcher.rules import not_applied_on_a_host
from launcher.run.backend import Chunk, Say, Session, ShmReading, Started
from launcher.run.local.checks import comparison, local_findings
from launcher.run.local.follow import LocalSession, frames_of, wait_for_end
from launcher.run.local.process_spec import ProcessSpec, process_spec
from launcher.run.local.processes import descendants, kill_marked, marked, send
from launcher.run.local.record import describe, described, state_of
from launcher.run.local.shm import read_host_shm
from launcher.run.local.state import RunFolder, state_is_writable
from launcher.run.wording import NAME_TAKEN, held_by_same_job

NO_PERMISSION = "TL502"
NOT_STARTED = "TL508"
SECONDS_TO_DIE = 20.0  # after SIGKILL; the keeper takes 10 of them for what is left
_PACKAGE = Path(__file__).resolve().parents[2]
# Isolated: neither the current folder nor PYTHONPATH may put another module in the place of the standard library's.
_KEEPER = (
    "import sys; sys.path.insert(0, sys.argv[1]); import launcher; del sys.path[0]; "
    "from launcher.run.local.keeper import main; main(sys.argv[2])"
)


def state_root() -> Path:
    """Return the folder of all local runs of this user."""
    base, home = os.environ.get("XDG_STATE_HOME", ""), os.path.expanduser("~")  # noqa: PTH111 - home() raises
    if not base.startswith("/"):
        # A uid without a passwd entry keeps its ~; a shared /tmp would let others plant runs.
        base = f"{home if home.startswith('/') else ''}/.local/state"
    return Path(base) / "trainlaunch" / "runs"


class LocalBackend:
    """Runs jobs as processes of this host."""

    place = "this host"
    sample_seconds = 1.0

    def __init__(self, root: Path | None = None) -> None:
        self._root = root or state_root()
        self._plans: dict[str, LaunchPlan] = {}

    def prepare(self, plan: LaunchPlan, say: Say) -> None:
        """Check this host, then the name; say once what has no effect here."""
        findings = local_findings(plan)
        if findings:
            raise TargetUnavailable(findings)
        holder = self._holder(plan.name)
        if holder is not None and not _may_move(holder, plan):
            raise TargetUnavailable([name_taken(plan, holder)])
        for finding in not_applied_on_a_host.check(plan):
            say(finding.message)
        say(comparison(plan))

    def create(self, plan: LaunchPlan, run: str, attempt: int) -> str:
        """Rename an ended earlier run of this job, then take its name, both under a lock."""
        with self._locked():
            holder = self._holder(plan.name)
            if holder is not None:
                if not _may_move(holder, plan):
                    raise TargetUnavailable([name_taken(plan, holder)])
                self._move_away(holder)
            folder = self._folder(f"{plan.job.name}/{run}-{attempt}")
            with state_is_writable(folder.path):
                try:
                    folder.make(describe(plan, run=run, attempt=attempt))
                except OSError:
                    self.remove(folder.id)
                    raise
        self._plans[folder.id] = plan
        return folder.id

    def begin(self, container: str) -> Session:
        """Start the keeper, and with it the job; the log is read from its first byte."""
        folder, plan = self._folder(container), self._plans.pop(container)
        run, _, attempt = folder.path.name.rpartition("-")
        spec = process_spec(plan, run_id=f"{plan.name}-{run}-{attempt}", folder=folder.path)
        problem = _start_keeper(folder, spec)
        if problem:
            self.remove(container)
            raise TargetUnavailable([_not_started(plan, problem)])
        return LocalSession(folder)

    def resume(self, container: str) -> Session:
        """Read the log from its first byte, and wait for the recorded end."""
        return LocalSession(self._folder(container))

    def stop(self, container: str) -> None:
        """Send the stop signal to the job's first process, as an engine does; SIGKILL after the grace period."""
        folder = self._folder(container)
        facts = described(folder)
        if facts is None or not self._send(folder, facts.stop_signal):
            return
        if wait_for_end(folder, facts.grace) is None:
            self.kill(container)
            wait_for_end(folder, SECONDS_TO_DIE)

    def kill(self, container: str) -> None:
        """Send SIGKILL to the job's first process; its keeper kills what it leaves, and we do where that is gone."""
        folder = self._folder(container)
        if self._send(folder, signal.SIGKILL):
            started = folder.started()
            if started is not None and not started[0].alive:
                kill_marked(folder.path)

    def _send(self, folder: RunFolder, number: int) -> bool:
        state, started = state_of(folder), folder.started()
        if state is None or started is None or state.status != "running":
            return False
        folder.note_signal(number)
        try:
            send(started[1], number)
        except PermissionError as refused:
            raise TargetUnavailable([_not_ours(state, number)]) from refused
        return True

    def inspect(self, container: str) -> Started | None:
        """Describe a run; the health command is run where it is running."""
        return state_of(self._folder(container), health=True)

    def signals(self, container: Started) -> tuple[int, ...]:
        """Return what was sent through trainlaunch; what `kill` sends leaves no trace on a host."""
        return self._folder(container.id).signals()

    def runs(self, job: str | None = None) -> tuple[Started, ...]:
        """Return the runs of this host, newest first."""
        found = (state_of(each, health=True) for each in self._folders(job or "*"))
        return tuple(sorted((each for each in found if each), key=lambda each: each.created, reverse=True))

    def logs(self, container: str, *, follow: bool) -> Iterator[Chunk]:
        """Yield the log's frames."""
        return frames_of(self._folder(container), follow=follow)

    def wait(self, container: str) -> int | None:
        """Block until it ended; None where nobody knows its code any more."""
        folder = self._folder(container)
        wait_for_end(folder, None)
        ended = folder.ended()
        return None if ended is None else ended[0]

    def remove(self, container: str) -> None:
        """Remove an ended run's folder, and processes that outlived their keeper."""
        folder = self._folder(container)
        kill_marked(folder.path)
        shutil.rmtree(folder.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            folder.path.parent.rmdir()

    def read_shm(self, container: Started) -> ShmReading | None:
        """Read the host's /dev/shm and the run's own share and workers."""
        folder = self._folder(container.id)
        started = folder.started()
        if started is None:
            return None
        keeper, process, _ = started
        pids = descendants(keeper.pid) if keeper.alive else marked(folder.path)
        return read_host_shm(pids or [process.pid], folder.peak())

    def close(self) -> None:
        """Nothing is open."""

    def _folder(self, container: str) -> RunFolder:
        return RunFolder(self._root / container)

    def _folders(self, job: str) -> list[RunFolder]:
        return [RunFolder(each) for each in self._root.glob(f"{job}/*")]

    def _holder(self, name: str) -> Started | None:
        states = (state_of(each) for each in self._folders("*"))
        return next((each for each in states if each is not None and each.name == name), None)

    def _move_away(self, holder: Started) -> None:
        folder = self._folder(holder.id)
        suffix = holder.run if holder.attempt == 1 else f"{holder.run}-{holder.attempt}"
        folder.describe({**(folder.description() or {}), "name": f"{holder.name}-{suffix}"})

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of all names; the kernel lets go of it when its holder dies."""
        with state_is_writable(self._root):
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = (self._root / ".lock").open("w")
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _start_keeper(folder: RunFolder, spec: ProcessSpec) -> str:
    """Start the keeper, and the job by it; return what kept either from starting, empty where both run."""
    try:
        keeper = subprocess.run(
            [sys.executable, "-I", "-c", _KEEPER, str(_PACKAGE), str(folder.path)],
            input=json.dumps(asdict(spec)).encode(),
            capture_output=True,
            start_new_session=True,
            check=False,
        )
    except OSError as refused:
        return str(refused)
    problem = (keeper.stdout + keeper.stderr).decode(errors="replace").strip()
    return problem or (f"its keeper ended with {keeper.returncode}" if keeper.returncode else "")


def name_taken(plan: LaunchPlan, holder: Started) -> Diagnostic:
    """Return the error for a name that another run holds (TL506)."""
    if holder.job == plan.job.name:
        return held_by_same_job(holder)
    return Diagnostic(
        code=NAME_TAKEN,
        message=f"the name {plan.name} is held by a local run of job {holder.job}",
        why="a run's name is unique on a host",
        fix=f"give `--name {plan.name}-2`, or end the other one with `trainlaunch down {holder.job}`",
    )


def _may_move(holder: Started, plan: LaunchPlan) -> bool:
    return holder.ended and holder.job == plan.job.name


def _not_started(plan: LaunchPlan, problem: str) -> Diagnostic:
    return Diagnostic(
        code=NOT_STARTED,
        message=f"local run {plan.name} could not be started",
        why=f"the system says: {problem.splitlines()[-1]}",
        fix="correct working_dir, or what that line names",
    )


def _not_ours(run: Started, number: int) -> Diagnostic:
    return Diagnostic(
        code=NO_PERMISSION,
        message=f"local run {run.name} can't be sent {signal.Signals(number).name}",
        why=f"its first process {run.pid} has become another user's, as under sudo",
        fix=f"end it as that user: `sudo kill {run.pid}`",
    )
