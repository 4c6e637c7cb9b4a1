from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL632"
NAME = "shm-name-collision"
_EXISTS = LogPattern("FileExistsError: [Errno 17]", r"File exists: '/[^/']+'")
_TORCH = LogPattern("nable to open shared memory object", r"shared memory object <[^<>]*>.*\(17\)")
_REUSED = LogPattern(
    "rror: Reused local directory", r"rror: Reused local directory: \[.*\] vs "
)  # else a list names one twice
_MAKES = r"shared_memory\.py|_posixshmem|SemLock"


def diagnose(case: Case) -> Diagnosis | None:
    """Match EEXIST for a name of one part, as segments have it: a file's path has several."""
    hit = case.first(_EXISTS, within=_MAKES) or case.first(_EXISTS) or case.first(_TORCH)
    if hit is None:
        return _streaming(case)
    return Diagnosis(
        CODE,
        NAME,
        "another process that shares this /dev/shm already has a segment of that name, or left one",
        seen(hit),
        "give each run its own /dev/shm with shm_size, without ipc host; or leave the name to Python (name=None)",
        LIKELY,
    )


def _streaming(case: Case) -> Diagnosis | None:
    hit = case.first(_REUSED)
    if hit is None:
        return None
    return Diagnosis(
        CODE,
        NAME,
        "streaming keeps the local directories of its datasets in /dev/shm, and one there already has this job's: "
        "another dataset of the script, a run that shares this /dev/shm, or one that died",
        seen(hit),
        "give each dataset a local directory of its own; after a run that died call "
        "streaming.base.util.clean_stale_shared_memory() once before the datasets are made",
        LIKELY,
    )
