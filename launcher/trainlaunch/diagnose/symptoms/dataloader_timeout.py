from __future__ import annotations

from trainlaunch.diagnose.base.case import Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL647"
NAME = "dataloader-timeout"
_TIMED_OUT = LogPattern("rror: DataLoader timed out", r"DataLoader timed out after \d+ seconds")
_THREADS = LogPattern("hread", r"is multi-threaded, use of fork\(\) may lead to deadlocks", beside=True)


def diagnose(case: Case) -> Diagnosis | None:
    """Match torch's text."""
    hit = case.first(_TIMED_OUT)
    if hit is None:
        return None
    forked = case.first(_THREADS)
    return Diagnosis(
        CODE,
        NAME,
        "a DataLoader worker gave no batch within the job's own timeout: it is stuck, or its storage is slow",
        seen(hit, forked),
        "look for the reason above that line, or at a worker with `py-spy dump --pid PID` before the timeout; where "
        "threads (Ray, gRPC, cv2) exist before the fork set data_loader.multiprocessing_context to forkserver",
    )
