from __future__ import annotations

from trainlaunch.diagnose.base.case import Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL629"
NAME = "shm-unwritable"
_DENIED = LogPattern("rror: [Errno", r"(?:PermissionError: \[Errno 13\]|OSError: \[Errno 30\])")
_MAKES = r"SemLock|_posixshmem|shared_memory\.py|synchronize\.py"
_TORCH = LogPattern("nable to open shared memory object", r"shared memory object <[^<>]*>.*\((?:13|30)\)")
_PATH = LogPattern(
    "/dev/shm",
    r"(?:Permission denied|Read-only file system).*/dev/shm\b"
    r"|/dev/shm\S{0,255}: (?:Permission denied|Read-)|/dev/shm.* .*error: (?:Permission denied|Read-)",
)


def diagnose(case: Case) -> Diagnosis | None:
    """Match EACCES and EROFS where a semaphore or a segment is made."""
    hit = case.first(_DENIED, within=_MAKES) or case.first(_TORCH, _PATH)
    if hit is None:
        return None
    what = (
        "is read-only"
        if "30" in hit.text or "Read-only" in hit.text
        else "belongs to another user, or a file in it does"
    )
    return Diagnosis(
        CODE,
        NAME,
        f"this user can't write to /dev/shm: it {what}",
        seen(hit),
        "let it be a tmpfs with mode 1777: shm_size makes one, a volume or a bind mounted over /dev/shm does not",
    )
