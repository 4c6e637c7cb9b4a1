"""The sharing strategy file_system, or its manager process, failed; /dev/shm is not full.

**What you see**: `unable to open shared memory object </torch_…> in read-write mode: No such file or directory (2)`,
`Shared memory manager connection has timed out`, or errors of `torch_shm_manager`.
**Why**: with file_system tensors are passed by name, and a manager process removes names when their owner is gone. A
segment can be gone before its receiver opens it, and the manager can be killed or starved.
**Way out**: go back to sharing_strategy file_descriptor, with enough file descriptors; a larger /dev/shm changes
nothing.
**References**: pytorch.org/docs/stable/multiprocessing.html, section Sharing strategies.
"""

from __future__ import annotations

from launcher.diagnose.case import Case
from launcher.diagnose.diagnosis import Diagnosis, seen
from launcher.diagnose.symptoms.shm_missing import TORCH, torch_makes
from launcher.diagnose.texts import Text

CODE = "TL646"
NAME = "shm-manager"
_MANAGER = Text("rror", r"Shared memory manager connection has timed out|[Ss]hared memory manager.*(?:died|closed)")
_PROCESS = Text(
    "shm", r"error executing torch_shm_manager|torch_shm_manager.*(?:no response|Permission denied|no such file)"
)


def diagnose(case: Case) -> Diagnosis | None:
    """Match ENOENT of a name of torch's that another process made, and the manager's texts."""
    opened = next((each for each in case.hits(TORCH) if not torch_makes(case, each)), None)
    hit = opened or case.first(_MANAGER, _PROCESS)
    if hit is None:
        return None
    sentence = (
        "sharing by file_system failed: a segment, or the manager that keeps them, was gone; /dev/shm is not full"
    )
    fix = (
        "use data_loader.sharing_strategy file_descriptor, with a higher limit of open files (`ulimit -n`); keep fewer "
        "batches, and don't give more workers than CPUs"
    )
    return Diagnosis(CODE, NAME, sentence, seen(hit), fix)
