"""Keeps `up` from starting a job on GPUs that a running job of ours has: looked up and started under one lock a host.

Nothing is chosen: the job gets the GPUs that its text names, and an error names those that are free.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import TargetUnavailable
from trainlaunch.gpu_names import ALL_GPUS
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.backend import ContainerInfo, Say
from trainlaunch.run.base.host_gpus import AMD_PREFIX, amd_gpus, gpu_nodes, gpu_uuids, held_by
from trainlaunch.targets import ON_THIS_MACHINE

_LOCK_SECONDS = 60.0
_POLL_SECONDS = 0.1


@contextlib.contextmanager
def reserve_gpus(plan: LaunchPlan, command: str, say: Say) -> Iterator[None]:
    """Hold the host's lock while a run is made; raises TargetUnavailable (TL531) where a GPU of it is taken.

    `command` is what the user typed, which the error completes.
    """
    with _locked(say):
        running = _holders()
        taken = _taken(held_by(plan), running)
        if taken:
            raise TargetUnavailable([_in_use(plan, taken, running, command)])
        yield


def _holders() -> list[ContainerInfo]:
    """Return the containers of all targets of this host that have GPUs; a target that can't be reached has none."""
    from trainlaunch.run.backends import backend_named

    with contextlib.ExitStack() as opened:
        backends = []
        for target in ON_THIS_MACHINE:
            with contextlib.suppress(TargetUnavailable):
                backends.append(opened.enter_context(contextlib.closing(backend_named(target, lambda _: None))))
        return [each for backend in backends for each in backend.listed() if _holds(each)]


def _holds(run: ContainerInfo) -> bool:
    return bool(run.gpus) and not run.ended


def _taken(wanted: str, running: Iterable[ContainerInfo]) -> dict[str, ContainerInfo]:
    """Return the wanted GPUs that runs have, each with the first that does; `all` is every one of its maker."""
    found: dict[str, ContainerInfo] = {}
    for run in running:
        for mine in _numbers(wanted):
            for theirs in _numbers(run.gpus):
                if _maker(mine) == _maker(theirs) and (mine == theirs or ALL_GPUS in (_bare(mine), _bare(theirs))):
                    found.setdefault(theirs if _bare(mine) == ALL_GPUS else mine, run)
    return found


def _numbers(gpus: str) -> list[str]:
    """Return GPUs by number, an id of NVIDIA's too where the driver tells whose it is."""
    known = gpu_uuids() if "GPU-" in gpus else {}
    return [known.get(each, each) for each in gpus.split(",") if each]


def _maker(gpu: str) -> bool:
    return gpu.startswith(AMD_PREFIX)


def _bare(gpu: str) -> str:
    return gpu.removeprefix(AMD_PREFIX)


def _in_use(
    plan: LaunchPlan, taken: Mapping[str, ContainerInfo], running: Iterable[ContainerInfo], command: str
) -> Diagnostic:
    named = ", ".join(_bare(each) for each in taken)
    holders = {run.id: run for run in taken.values()}
    who = ", ".join(f"{each.name} (job {each.job})" for each in holders.values())
    first = next(iter(holders.values()))
    there = amd_gpus() if plan.job.resources.gpu_vendor == "amd" else range(gpu_nodes() or 0)
    prefix = AMD_PREFIX if plan.job.resources.gpu_vendor == "amd" else ""
    free = [str(each) for each in there if not _taken(f"{prefix}{each}", running)]
    needed = plan.gpus.count
    if plan.nodes == 1 and 0 < needed <= len(free):
        fix = f"type `{command} --set 'resources.gpus=[{','.join(free[:needed])}]'`"
    else:
        known = f"{len(free)} of {len(there)} are free; " if there else ""
        fix = f"{known}wait for it: `trainlaunch wait {first.name}`"
    span = plan.job.span("resources.gpus")
    return Diagnostic(
        "TL531",
        f"GPU {named} of this host {'is' if len(taken) == 1 else 'are'} used by {who}",
        f"{fix}, or add --share-gpus",
        why="resources.gpus is what runs, and a count means the first GPUs; two jobs on one share its memory",
        span=span,
        field="resources.gpus",
    )


@contextlib.contextmanager
def _locked(say: Say, folder: Path | None = None) -> Iterator[None]:
    """Hold the one lock of this host, of all users; without one the job starts all the same, and it is said."""
    path = (folder or Path(tempfile.gettempdir())) / ".trainlaunch-gpus.lock"
    try:
        lock = _opened(path)
    except OSError as cause:
        say(f"another `up` could take the same GPU now: {path} can't be opened ({cause.strerror})")
        yield
        return
    try:
        until = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    say(f"another process has locked {path} for a minute; going on without it")
                    break
                time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(lock)


def _opened(path: Path) -> int:
    """Open the lock, made by whoever comes first for everybody; what is no plain file there is not followed."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o444))
    lock = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(lock).st_mode):
        os.close(lock)
        raise OSError(0, "it is not a plain file")
    return lock
