from __future__ import annotations

from trainlaunch.diagnose.base.case import Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.diagnose.base.memory_advice import larger_shm, shm_commands, shm_place

CODE = "TL604"
NAME = "shm-exhausted-semaphore"
_ENOSPC = LogPattern("o space left on device", r"\[Errno 28\] No space left on device\s*$")


def diagnose(case: Case) -> Diagnosis | None:
    """Match ENOSPC within a traceback through SemLock: beside one, it is another error's."""
    hit = case.first(_ENOSPC, within=r"SemLock|synchronize\.py")
    if hit is None:
        return None
    return Diagnosis(
        CODE,
        NAME,
        f"{shm_place(case.evidence)} has no room left for a semaphore; no disk is full",
        seen(hit),
        larger_shm(case.evidence),
        commands=shm_commands(case.evidence),
    )
