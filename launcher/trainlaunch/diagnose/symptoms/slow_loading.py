from __future__ import annotations

import math

from trainlaunch.diagnose.base.case import LIKELY, POSSIBLE, Case, Diagnosis, EvidenceLine
from trainlaunch.diagnose.base.container_snapshot import (
    LONG,
    ContainerSnapshot,
    Process,
    duration,
    is_idle,
    is_in_lock,
    place,
    slept,
    waiting_mains,
    was_forked,
)

CODE = "TL670"
NAME = "slow-loading"
BUSY = 0.8  # of the CPUs that the workers could use at most
MIN_GPU = 0.25  # busy: below that nobody can tell how many workers would be enough
GPU_WAITS = 85.0  # percent


def diagnose(case: Case) -> Diagnosis | None:
    """Return None: a log doesn't show what a job waits for."""


def diagnose_live(case: Case, look: ContainerSnapshot) -> Diagnosis | None:
    """Match a worker that is stuck while the job waits for it, or workers that do all they can."""
    for main in waiting_mains(look):
        workers = look.workers_of(main)
        if any(is_in_lock(each) and was_forked(each) for each in workers):
            continue  # fork-deadlock
        stuck = [each for each in workers if slept(each) >= LONG and not is_idle(each) and not each.dead]
        if stuck:
            return _stuck(look, max(stuck, key=slept))
        if not any(is_idle(each) for each in workers) and all(each.busy < GPU_WAITS for each in look.gpus):
            return _slow(look, workers, main)
    return None


def _stuck(look: ContainerSnapshot, worker: Process) -> Diagnosis:
    seen = EvidenceLine("machine", 0, f"pid {worker.pid}: state {worker.state}, in the kernel's {worker.kernel or '?'}")
    return Diagnosis(
        CODE,
        NAME,
        f"worker {look.number(worker)} has been {place(worker)}{duration(worker)}, and the job waits for it",
        (seen,),
        "look at what that line waits for: storage, a download, a lock; data_loader.timeout makes it an error",
        LIKELY if worker.stack else POSSIBLE,
    )


def _slow(look: ContainerSnapshot, workers: tuple[Process, ...], main: Process) -> Diagnosis | None:
    used = sum(each.cpu or 0 for each in workers)
    starved = sum(each.starved or 0 for each in workers)
    most = min(len(workers), look.cpus or len(workers))
    if used + starved < BUSY * most and (not main.stack or any("futex" in each.kernel for each in workers)):
        return None
    idle = f", GPU idle {100 - sum(each.busy for each in look.gpus) / len(look.gpus):.0f} %" if look.gpus else ""
    fix, sure = _more(look, workers), LIKELY
    if used >= BUSY * most:
        what = "loading is the limit"
    elif used + starved >= BUSY * most:
        what = f"they wait for a CPU {100 * starved / len(workers):.0f} % of the time"
        fix = "raise resources.cpus, or end what else uses these CPUs; more workers would not help"
    else:
        what, sure = "they wait too, for their storage most often", POSSIBLE
        fix = f"try num_workers {2 * len(workers)}, or faster storage"
    seen = EvidenceLine(
        "machine", 0, f"{len(workers)} workers use {used:.1f} of {most:g} CPUs; pid {main.pid} waits for them"
    )
    return Diagnosis(
        CODE, NAME, f"workers at {100 * used / len(workers):.0f} % CPU, queue empty{idle}: {what}", (seen,), fix, sure
    )


def _more(look: ContainerSnapshot, workers: tuple[Process, ...]) -> str:
    """Return how many workers to try, as many as would keep the GPU busy and have a CPU each."""
    share = min((each.busy / 100 for each in look.gpus), default=0.5)
    wanted = math.ceil(len(workers) / max(share, MIN_GPU))
    fits = min(wanted, int(look.cpus / max(len(look.mains), 1))) if look.cpus else wanted
    every = "raise resources.cpus (the workers use all there are), then num_workers; or make __getitem__ cheaper"
    return f"try num_workers {fits}" if fits > len(workers) else every
