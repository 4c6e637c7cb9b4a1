from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_facts import Hit
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL628"
NAME = "shm-missing"
_ENOENT = LogPattern(
    "rror: [Errno", r"(?:FileNotFoundError: \[Errno 2\] No such file or directory$|OSError: \[Errno 38\])"
)
TORCH = LogPattern("nable to open shared memory object", r"unable to open shared memory object <[^<>]*>.*\(2\)")
_TORCH_MAKES = r"_share_f(?:d|ilename)_cpu_|_new_using_f(?:d|ilename)_cpu"
_MAKES = r"SemLock\(|_posixshmem\.shm_open|synchronize\.py.*__init__"
_PATH = LogPattern(
    "/dev/shm", r"/dev/shm['\"/:]? *: No such file or directory|No such file or directory: '/dev/shm['/]"
)


def torch_makes(case: Case, hit: Hit) -> bool:
    """Whether torch was to make the segment that it names, so that /dev/shm is missing; else one was only opened."""
    return hit.within(_TORCH_MAKES) or case.evidence.ipc_mode == "none"


def diagnose(case: Case) -> Diagnosis | None:
    """Match ENOENT where a semaphore or segment is made; where one is only opened again, it was removed."""
    hit = next((each for each in case.hits(_ENOENT, within=_MAKES) if not each.within("_rebuild")), None)
    hit = hit or case.first(_PATH) or next((each for each in case.hits(TORCH) if torch_makes(case, each)), None)
    if hit is None:
        return None
    if case.evidence.ipc_mode == "none":
        return Diagnosis(
            CODE,
            NAME,
            "the container has no /dev/shm: its ipc is none",
            seen(hit),
            "delete ipc none, and give shm_size",
        )
    return Diagnosis(
        CODE,
        NAME,
        "a semaphore or segment could not be made: there is no /dev/shm, or this user may not enter it",
        seen(hit),
        "look with `ls -ld /dev/shm` inside; without one give shm_size and no ipc none, else mount it with mode 1777",
        LIKELY,
    )
