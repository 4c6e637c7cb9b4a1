from __future__ import annotations

from trainlaunch.diagnose.base.bus_error import IN_WORKER, WORKER_KILLED
from trainlaunch.diagnose.base.case import LIKELY, POSSIBLE, Case, Diagnosis, EvidenceLine, seen
from trainlaunch.diagnose.base.container_snapshot import IDLE, ContainerSnapshot, Process, is_idle, waiting_mains
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.diagnose.base.memory_advice import larger_shm, shm_commands, shm_place
from trainlaunch.diagnose.symptoms.shm_exhausted import IN_TORCH, RESERVE, RESIZE, WRITE

CODE = "TL603"
NAME = "shm-exhausted-hang"
FULL = 0.97  # of /dev/shm
HANDED_OVER = 0.05  # seconds in which a batch gets from a worker to the main process
HALF_FULL = 0.5  # what a lost batch leaves: those after it wait for it in /dev/shm
FEED = r"queues\.py.*\b_feed\b"
_DIED = LogPattern("DataLoader worker", r"DataLoader worker \(.*\) (?:is killed by signal|exited unexpectedly)")


def diagnose(case: Case) -> Diagnosis | None:
    """Match the feeder thread's traceback with a full /dev/shm at its end, where no worker died beside it."""
    hit = case.first(RESERVE, RESIZE, WRITE, IN_TORCH, within=FEED)
    if hit is None or case.first(_DIED, IN_WORKER, WORKER_KILLED) is not None:
        return None
    hung = "the run is hung and will not end by itself" if case.exit_code is None else "the job then waited for it"
    first = "end the run, then " if case.exit_code is None else ""
    return Diagnosis(
        CODE,
        NAME,
        f"{shm_place(case.evidence)} is full, and a DataLoader worker lost a batch: {hung}",
        seen(hit),
        f"{first}{larger_shm(case.evidence)}; data_loader.timeout makes it an error",
        commands=shm_commands(case.evidence),
    )


def diagnose_live(case: Case, look: ContainerSnapshot) -> Diagnosis | None:
    """Match a job that waits for a batch while its workers have nothing to do, and /dev/shm is full of the others."""
    if look.shm is None or not look.shm.size or look.shm.used < HALF_FULL * look.shm.size:
        return None
    for main in waiting_mains(look):
        workers = look.workers_of(main)
        if not all(is_idle(each) for each in workers) or not all(_rests(each) for each in (main, *workers)):
            continue
        full = look.shm.used >= FULL * look.shm.size
        shown = EvidenceLine(
            "machine", 0, f"all {len(workers)} workers wait for work, and process {main.pid} for a batch"
        )
        return Diagnosis(
            CODE,
            NAME,
            f"{shm_place(case.evidence)} has no room for one more batch: the job waits for one that was lost",
            (shown,),
            f"end the run, then {larger_shm(case.evidence)}; data_loader.timeout makes it an error",
            LIKELY if full or main.stack else POSSIBLE,
        )
    return None


def _rests(process: Process) -> bool:
    return (process.cpu or 0) < IDLE and (process.asleep is None or process.asleep >= HANDED_OVER)
