"""/dev/shm has no room for a semaphore: a bare `No space left on device` out of SemLock that looks like a full disk.

**What you see**: `sl = self._semlock = _multiprocessing.SemLock(` and `OSError: [Errno 28] No space left on
device`.
**Why**: POSIX semaphores are files of one page in /dev/shm. Either it is full, or it was made a few bytes large:
docker reads `--shm-size=64` as 64 bytes.
**Way out**: enlarge /dev/shm; write a unit.
**References**: python/cpython#93253.
"""

from __future__ import annotations

from launcher.diagnose.case import Case
from launcher.diagnose.diagnosis import Diagnosis, seen, shm_place
from launcher.diagnose.shm_advice import larger_shm, shm_commands
from launcher.diagnose.texts import Text

CODE = "TL604"
NAME = "shm-exhausted-semaphore"
_ENOSPC = Text("o space left on device", r"\[Errno 28\] No space left on device\s*$")


def diagnose(case: Case) -> Diagnosis | None:
    """Match ENOSPC within a traceback through SemLock: beside one, it is another error's."""
    hit = case.first(_ENOSPC, within=r"SemLock|synchronize\.py")
    if hit is None:
        return None
    sentence = f"{shm_place(case.evidence)} has no room left for a semaphore; no disk is full"
    return Diagnosis(CODE, NAME, sentence, seen(hit), larger_shm(case.evidence), commands=shm_commands(case.evidence))
