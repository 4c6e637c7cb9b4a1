"""The process that stays with a detached run: further attempts, active_deadline, hangs, the end of ttl_after_finished.

It is a session of its own and has no terminal. Which run and what plan it reads from stdin, since that holds the values
of secrets: they are in its memory alone, in no argument, no file and no process's environment. Who starts it waits
until it holds the run's lock. Its own SIGTERM ends it alone; the run goes on, and `attach` takes it up. What a logout
does to runs and supervisors of this user is asked of logind, which may remove files in /dev/shm too.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import pwd
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from trainlaunch.errors import LaunchError
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.backends import backend_named
from trainlaunch.run.base import secret_values
from trainlaunch.run.base.backend import Backend
from trainlaunch.run.base.console import Console, Event, Events, hang_watch
from trainlaunch.run.base.multi_node import containers_of_run
from trainlaunch.run.run_lock import RunLock, hold
from trainlaunch.run.run_record import RunRecord, plan_from
from trainlaunch.run.supervise import Supervisor

LOOK_SECONDS = (
    20.0  # between two looks at a run that waits for its ttl; a Podman service of ours ends after 30 idle ones
)
START_SECONDS = 60.0
KEPT = b"kept"
_PACKAGE = Path(__file__).resolve().parents[2]
# Isolated: neither the current folder nor PYTHONPATH may put another module in the place of the standard library's.
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); import trainlaunch; del sys.path[0]; "
    "from trainlaunch.run.keeper import main; main()"
)


def spawn_keeper(plan: LaunchPlan, run: str) -> str:
    """Start a supervisor for a run that was begun; return what kept it from starting, empty where it keeps."""
    values = secret_values.variables(plan)
    task = json.dumps({"run": run, "values": values}).encode() + b"\n" + pickle.dumps(with_absolute_path(plan))
    words = [sys.executable, "-I", "-c", _PROGRAM, str(_PACKAGE), f"{plan.job.name}/{run}"]
    try:
        keeper = subprocess.Popen(
            words,
            env={name: value for name, value in os.environ.items() if name not in values},
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        said, _ = keeper.communicate(task, timeout=START_SECONDS)
    except subprocess.TimeoutExpired:
        keeper.kill()
        keeper.communicate()
        return f"it did not answer within {START_SECONDS:.0f} s"
    except OSError as refused:
        return str(refused)
    words_said = said.decode(errors="replace").strip().splitlines()
    return "" if said.strip() == KEPT else (words_said or ["it ended without a word"])[-1]


def with_absolute_path(plan: LaunchPlan) -> LaunchPlan:
    """Return a plan that means the same from every folder."""
    return plan._replace(job=plan.job._replace(path=str(Path(plan.job.path).absolute())))


def main() -> None:
    """Be a supervisor: read the task, take the lock, leave whoever started it, follow the run to its end."""
    task = json.loads(sys.stdin.buffer.readline())
    plan, run = plan_from(sys.stdin.buffer.read()), str(task["run"])
    secret_values.hold_values(task["values"])
    if os.fork():  # so that it is nobody's child: who started it may live on and would have to reap it
        os._exit(0)
    held = hold(run)
    os.write(1, KEPT if held is not None else b"another process of this host supervises that run")
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(nothing, each)
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    if held is not None:
        keep(plan, run, held)


def keep(plan: LaunchPlan, run: str, held: RunLock) -> None:
    """Supervise a run to its end, and until its ttl_after_finished is over."""
    redacted = secret_values.Redactor(secret_values.values_here(plan).items())
    kept = RunRecord(run, redact=redacted)
    for lacking in secret_values.secret_findings(plan):
        kept.say(f"another attempt can't be started: {lacking.message}")
    console = Console(_nowhere, _nowhere, kept.say, hang_watch(plan, redacted))
    events: Events[Event] = Events()
    try:
        with contextlib.closing(backend_named(plan.target, kept.say)) as backend:
            containers = containers_of_run(backend.runs(plan.job.name, run), run)
            if containers:
                Supervisor(backend, plan, console, events, kept).resume(containers)
            held.over = True
            remove_when_due(backend, plan, run)
    except LaunchError as lost:
        kept.say(f"the supervisor has ended: {lost}")


def _nowhere(_: bytes) -> None:
    """The target has the job's output."""


def remove_when_due(backend: Backend, plan: LaunchPlan, run: str) -> None:
    """Remove a run when its ttl_after_finished is over, unless somebody is faster; nothing without one."""
    ttl = plan.job.ttl_after_finished
    while ttl is not None:
        same = backend.runs(plan.job.name, run)
        if not same or not all(each.ended for each in same):
            return
        left = max(each.finished for each in same) + ttl - time.time()
        if left <= 0:
            for each in same:
                backend.remove(each.id)
            RunRecord(run).remove()
            return
        time.sleep(min(left, LOOK_SECONDS))


RUNTIME = Path("/run/systemd/users")
LINGERING = Path("/var/lib/systemd/linger")
PROPERTIES = ("RemoveIPC", "KillUserProcesses", "KillOnlyUsers", "KillExcludeUsers")
FIRST_UID = 1000  # logind leaves the files of system users alone
_ASK = ("busctl", "get-property", "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
_ASK_SECONDS = 5


class Logout(NamedTuple):
    """What happens when this user's last session ends: `removes_shm`, and whether processes are killed."""

    removes_shm: bool = False
    kills: bool = False

    def words(self, *, uses_hosts_shm: bool) -> tuple[str, ...]:
        """Return what to do about it, a sentence each; `uses_hosts_shm`: the run's /dev/shm is the host's."""
        said = []
        if self.kills:
            said.append(
                "logind kills this user's processes at logout (KillUserProcesses): start it with "
                "`loginctl enable-linger`, then `systemd-run --user --scope trainlaunch up …`"
            )
        if self.removes_shm and uses_hosts_shm:
            said.append(
                "logind removes this user's files in /dev/shm after the last logout (RemoveIPC), and the job's with "
                "them: `loginctl enable-linger` keeps them"
            )
        return tuple(said)


def at_logout(runtime: Path = RUNTIME, lingering: Path = LINGERING) -> Logout:
    """Return what this user's logout does; nothing where logind doesn't know the user, or doesn't answer."""
    uid = os.getuid()
    if not (runtime / str(uid)).exists():
        return Logout()
    try:
        name = pwd.getpwuid(uid).pw_name
        asked = subprocess.run([*_ASK, *PROPERTIES], capture_output=True, text=True, timeout=_ASK_SECONDS, check=False)
    except (KeyError, OSError, subprocess.TimeoutExpired):
        return Logout()
    return outcome(asked.stdout, name, system_user=uid < FIRST_UID, lingers=(lingering / name).exists())


def outcome(answer: str, user: str, *, system_user: bool, lingers: bool) -> Logout:
    """Return what `busctl get-property` answers for PROPERTIES means for a user."""
    values = [shlex.split(line)[1:] for line in answer.splitlines()]
    if len(values) != len(PROPERTIES):
        return Logout()
    known = dict(zip(PROPERTIES, values, strict=True))
    only, spared = known["KillOnlyUsers"][1:], known["KillExcludeUsers"][1:]
    kills = known["KillUserProcesses"] == ["true"] and user not in spared and (not only or user in only)
    return Logout(removes_shm=known["RemoveIPC"] == ["true"] and not system_user and not lingers, kills=kills)
