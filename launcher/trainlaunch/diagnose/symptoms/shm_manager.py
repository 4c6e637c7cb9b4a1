from __future__ import annotations

from trainlaunch.diagnose.base.case import Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.diagnose.symptoms.shm_missing import TORCH, torch_makes

CODE = "TL646"
NAME = "shm-manager"
_MANAGER = LogPattern(
    "rror", r"Shared memory manager connection has timed out|[Ss]hared memory manager.*(?:died|closed)"
)
_PROCESS = LogPattern(
    "shm", r"error executing torch_shm_manager|torch_shm_manager.*(?:no response|Permission denied|no such file)"
)


def diagnose(case: Case) -> Diagnosis | None:
    """Match ENOENT of a name of torch's that another process made, and the manager's texts."""
    opened = next((each for each in case.hits(TORCH) if not torch_makes(case, each)), None)
    hit = opened or case.first(_MANAGER, _PROCESS)
    if hit is None:
        return None
    return Diagnosis(
        CODE,
        NAME,
        "sharing by file_system failed: a segment, or the manager that keeps them, was gone; /dev/shm is not full",
        seen(hit),
        "use data_loader.sharing_strategy file_descriptor, with a higher limit of open files (`ulimit -n`); keep fewer "
        "batches, and don't give more workers than CPUs",
    )
