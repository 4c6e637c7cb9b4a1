"""What waits for data, or has too little of it."""

from __future__ import annotations

import math

from trainlaunch.diagnose.base.case import LIKELY, POSSIBLE, Case, EvidenceLine, Symptom, Told, of_one_text, seen
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
    waits_for_batch,
    was_forked,
)
from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.units import counted

FIX = (
    "give the DataLoader multiprocessing_context='forkserver', and data_loader in the job file the same; or start "
    "threads (Ray, gRPC, cv2, tokenizers) after the workers"
)
_STACK = LogPattern(
    '  File "',
    r"File .*(?:threading|logging/__init__)\.py\"?,? line \d+,? in (?:acquire|_acquireLock|__enter__)\b",
)
_SPY = LogPattern(
    "Thread ", r"^Thread \S+ \((?:active|idle)\): .*|Thread 0x[0-9a-f]+ \(most recent call first\)", beside=True
)


def _fork_deadlock(case: Case) -> Told | None:
    """Match a dump of stacks that stand in a lock."""
    hit = case.first(_STACK) if case.exit_code is None and case.first(_SPY) else None
    if hit is None:
        return None
    return Told("a worker waits for a lock that was held when it was forked", seen(hit), FIX, POSSIBLE)


def _fork_deadlock_live(case: Case, look: ContainerSnapshot) -> Told | None:
    """Match workers that were forked and stand in a lock while the job waits for them."""
    waiting = {each.pid for each in look.mains if waits_for_batch(look, each)}
    stuck = [each for each in look.workers if each.parent in waiting and is_in_lock(each) and was_forked(each)]
    if not stuck:
        return None
    first = stuck[0]
    sentence = f"worker {look.number(first)} has waited for a lock {place(first)}{duration(first)}: most often one "
    sentence += "that another thread held when the worker was forked, and that nobody will release"
    shown = EvidenceLine(
        "machine", 0, f"pid {first.pid}: in the kernel's {first.kernel}; {counted(len(stuck), 'worker')} there"
    )
    return Told(sentence, (shown,), FIX, LIKELY if first.stack else POSSIBLE)


BUSY = 0.8  # of the CPUs that the workers could use at most
MIN_GPU = 0.25  # busy: below that nobody can tell how many workers would be enough
GPU_WAITS = 85.0  # percent


def _slow_loading(case: Case) -> Told | None:
    """Return None: a log doesn't show what a job waits for."""


def _slow_loading_live(case: Case, look: ContainerSnapshot) -> Told | None:
    """Match a worker that is stuck while the job waits for it, or workers that do all they can."""
    for main in waiting_mains(look):
        workers = look.workers_of(main)
        if any(is_in_lock(each) and was_forked(each) for each in workers):
            continue  # fork-deadlock
        stuck = [each for each in workers if slept(each) >= LONG and not is_idle(each) and not each.dead]
        if stuck:
            return _stuck(look, max(stuck, key=slept))
        if not any(is_idle(each) for each in workers) and all(each.busy < GPU_WAITS for each in look.gpus):
            return _slow(case, look, workers, main)
    return None


def _stuck(look: ContainerSnapshot, worker: Process) -> Told:
    seen = EvidenceLine("machine", 0, f"pid {worker.pid}: state {worker.state}, in the kernel's {worker.kernel or '?'}")
    return Told(
        f"worker {look.number(worker)} has been {place(worker)}{duration(worker)}, and the job waits for it",
        (seen,),
        "look at what that line waits for: storage, a download, a lock; data_loader.timeout makes it an error",
        LIKELY if worker.stack else POSSIBLE,
    )


def _slow(case: Case, look: ContainerSnapshot, workers: tuple[Process, ...], main: Process) -> Told | None:
    used = sum(each.cpu or 0 for each in workers)
    starved = sum(each.starved or 0 for each in workers)
    most = min(len(workers), look.cpus or len(workers))
    if used + starved < BUSY * most and (not main.stack or any("futex" in each.kernel for each in workers)):
        return None
    idle = f", GPU idle {100 - sum(each.busy for each in look.gpus) / len(look.gpus):.0f} %" if look.gpus else ""
    fix, sure = _more(case.evidence, look, workers), LIKELY
    if used >= BUSY * most:
        what = "loading is the limit"
    elif used + starved >= BUSY * most:
        what = f"they wait for a CPU {100 * starved / len(workers):.0f} % of the time"
        fix = "raise resources.cpus, or end what else uses these CPUs; more workers would not help"
    else:
        what, sure = "they wait too, for their storage most often", POSSIBLE
        fix = f"try more: {case.evidence.workers.to_have(2 * len(workers))}; or faster storage"
    seen = EvidenceLine(
        "machine",
        0,
        f"CPU use of {counted(len(workers), 'worker')}: {used:.1f} of {most:g}; pid {main.pid} waits for a batch",
    )
    return Told(
        f"workers at {100 * used / len(workers):.0f} % CPU, queue empty{idle}: {what}",
        (seen,),
        fix,
        sure,
    )


def _more(evidence: Evidence, look: ContainerSnapshot, workers: tuple[Process, ...]) -> str:
    """Return how many workers to try, as many as would keep the GPU busy and have a CPU each."""
    share = min((each.busy / 100 for each in look.gpus), default=0.5)
    wanted = math.ceil(len(workers) / max(share, MIN_GPU))
    fits = min(wanted, int(look.cpus / max(len(look.mains), 1))) if look.cpus else wanted
    every = "raise resources.cpus (the workers use all there are), then num_workers; or make __getitem__ cheaper"
    return f"try more: {evidence.workers.to_have(fits)}" if fits > len(workers) else every


_LENGTH = LogPattern("Length of IterableDataset", r"Length of IterableDataset .* was reported to be \d+", beside=True)
_NO_LEN = LogPattern(
    "rror: object of type", r"TypeError: object of type '\w*(?:Iterable|Stream|Web)\w*' has no len\(\)"
)

_iterable_length = of_one_text(
    "TL653",
    "iterable-length",
    (_LENGTH, _NO_LEN),
    "the IterableDataset gives more samples than it says: each worker most likely yields all of them",
    "share the samples out in __iter__ by torch.utils.data.get_worker_info(), and let __len__ say what one pass gives",
    LIKELY,
)


_ONE = LogPattern("rror: Expected more than 1", r"Expected more than 1 value per channel when training")

_batchnorm_last_batch = of_one_text(
    "TL652",
    "batchnorm-last-batch",
    (_ONE,),
    "the last batch of the epoch has a single sample, which batch normalisation can't train on",
    "give DataLoader(drop_last=True), or a batch_size that does not leave one sample over",
)


SYMPTOMS = (
    Symptom("TL648", "fork-deadlock", _fork_deadlock, _fork_deadlock_live),
    Symptom("TL670", "slow-loading", _slow_loading, _slow_loading_live),
    _iterable_length,
    _batchnorm_last_batch,
)
