"""What is on record about a local run, and what is true of it now: its state from its folder and its processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from trainlaunch.container.preflight import health_text, plan_variables
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.plan_label import Planned, planned_of
from trainlaunch.run.base.backend import ContainerInfo
from trainlaunch.run.base.host_gpus import GPUS, held_by
from trainlaunch.run.base.private_files import UnusableState
from trainlaunch.run.base.run_query import MEASURES, OWNER_KEY, own_name
from trainlaunch.run.local.processes import RUN_ID, ProcessIdentity, boot_id, descendants, identity_of, marked, run_id
from trainlaunch.run.local.state import RunFolder
from trainlaunch.targets import LOCAL
from trainlaunch.units import counted

NEVER_STARTED = "the launcher that created it ended before it started it"
LOST = "the process that kept it was killed, and the exit code is lost with it"
RESTARTED = "the host was restarted while it ran"


@dataclass(frozen=True, slots=True)
class Facts:
    """How a run is to be stopped: the signal, and seconds until the kill."""

    stop_signal: int
    grace: int


def describe(plan: LaunchPlan, *, run: str, attempt: int) -> dict[str, Any]:
    """Return what `status` and `down` need to know without the job file, as plain values."""
    job = plan.job
    return {
        "name": plan.name,
        "job": job.name,
        "run": run,
        OWNER_KEY: own_name(),
        GPUS: held_by(plan),
        MEASURES: plan.measures,
        "attempt": attempt,
        "max_attempts": job.max_attempts,
        "ttl": job.ttl_after_finished,
        "created": time.time(),
        "host": os.uname().nodename,
        "creator": asdict(identity_of(os.getpid())),
        "memory": plan.memory.limit or 0,
        "planned": planned_of(plan)._asdict(),
        "stop_signal": signal_number(job.stop_signal),
        "grace": job.stop_grace_period,
        "health": {
            "command": health_text(),
            "variables": plan_variables(plan),
            "timeout": job.healthcheck.timeout,
            "start_period": job.healthcheck.start_period,
            "interval": job.healthcheck.interval,
            "retries": job.healthcheck.retries,
            "run_id": run_id(plan.name, run, attempt),
        },
    }


def signal_number(name: str | None) -> int:
    """Return the number of a stop signal as job files write it: `TERM`, `SIGUSR1`, `RTMIN+3`, `15`; None: SIGTERM."""
    if name is None:
        return signal.SIGTERM
    if name.isdigit():
        return int(name)
    base, _, more = name.removeprefix("SIG").partition("+")
    return signal.Signals[f"SIG{base}"] + int(more or 0)


def described(folder: RunFolder) -> Facts | None:
    """Return how to stop a run; None where it is gone. Raises UnusableState."""
    known = folder.description()
    return None if known is None else Facts(known["stop_signal"], known["grace"])


def folders_described(folders: Iterable[RunFolder], holds: Callable[[dict[str, Any]], bool]) -> Iterator[RunFolder]:
    """Yield those of whose description something holds, or that can't be used: of others no more is read."""
    for folder in folders:
        with contextlib.suppress(UnusableState):
            if not holds(folder.description() or {}):
                continue
        yield folder


def state_of(folder: RunFolder, *, health: bool = False) -> ContainerInfo | None:
    """Return what is true of a run now; None where its folder is gone or belongs to another host.

    With `health` its health command is run. Raises UnusableState where a file of it is another user's or damaged.
    """
    known = folder.description()
    try:
        return None if known is None or known["host"] != os.uname().nodename else _state(folder, known, health=health)
    except (KeyError, TypeError, ValueError) as other:
        raise UnusableState("run.json is of another version of trainlaunch") from other


def _state(folder: RunFolder, known: dict[str, Any], *, health: bool) -> ContainerInfo:
    started = folder.started()
    status, error = _status(folder, known, started)
    ended = folder.ended()
    healthy, said = _health(known, started[2]) if health and started and status == "running" else ("", "")
    if ended and (peak := folder.peak()).held:  # as an engine keeps the last line of its health check
        said = f"shm used=0 peak={peak.held} size=0 peak_workers={peak.workers or 0} largest={peak.largest}"
    return ContainerInfo(
        id=folder.id,
        name=known["name"],
        job=known["job"],
        run=known["run"],
        attempt=known["attempt"],
        max_attempts=known["max_attempts"],
        status=status,
        exit_code=ended[0] if ended else None,
        error=error,
        oom_killed=False,
        health=healthy,
        health_output=said,
        created=known["created"],
        started=started[2] if started else 0.0,
        finished=ended[1] if ended else 0.0,
        ipc_mode="host",
        shm_size=known["planned"]["size"],
        memory=known["memory"],
        pid=started[1].pid if started else 0,
        planned=Planned(**known["planned"]),
        ttl=known["ttl"],
        target=LOCAL.name,
        owner=known.get(OWNER_KEY, ""),
        gpus=known.get(GPUS, ""),
        measures=known.get(MEASURES, ""),
    )


def _status(
    folder: RunFolder, known: dict[str, Any], started: tuple[ProcessIdentity, ProcessIdentity, float] | None
) -> tuple[str, str]:
    """Return status and error. The end is looked for after the supervisor, which records it as its last act."""
    if started is None:
        alive = ProcessIdentity(**known["creator"]).alive
        return "created", "" if alive or folder.started() else NEVER_STARTED
    keeper, first, _ = started
    if folder.ended() is not None:
        return "exited", ""
    if keeper.alive:
        return "running", ""
    if folder.ended() is not None:
        return "exited", ""
    if keeper.boot != boot_id():
        return "exited", RESTARTED
    if first.alive:  # it has another user's rights, as under sudo, and so did not die with its supervisor
        return "running", ""
    left = marked(folder.path)
    return "exited", LOST + f"; still running: {counted(len(left), 'process')} that it started, until `down`" * bool(
        left
    )


def _health(known: dict[str, Any], started: float) -> tuple[str, str]:
    """Run the health command; return what an engine would say: starting, healthy or unhealthy, and its line."""
    check = known["health"]
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", check["command"]],
            env={**os.environ, **check.get("variables", {}), RUN_ID: str(check.get("run_id", ""))},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=check["timeout"],
            check=False,
        )
    except subprocess.TimeoutExpired:
        code, said = 1, f"the health command took longer than {check['timeout']} s"
    else:
        code, said = done.returncode, done.stdout.strip()
    if not code:
        return "healthy", said
    return "starting" if time.time() - started < check["start_period"] else "unhealthy", said


def identities(folder: RunFolder) -> tuple[ProcessIdentity, ProcessIdentity] | None:
    """Return the supervisor and the job's first process; None where no record of ours tells them."""
    with contextlib.suppress(UnusableState):
        if (started := folder.started()) is not None:
            return started[:2]
    return None


def run_pids(folder: RunFolder) -> list[int]:
    """Return the processes of a run, its first before those that it started; none where no record tells them."""
    known = identities(folder)
    if known is None:
        return []
    keeper, process = known
    return (descendants(keeper.pid) if keeper.alive else marked(folder.path)) or [process.pid]
