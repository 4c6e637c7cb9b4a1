"""/dev/shm has no room for a semaphore: a bare `No space left on device` out of SemLock that looks like a full disk.

**What you see**: `sl = self._semlock = _multiprocessing.SemLock(` and `OSError: [Errno 28] No space left on
device`.
**Why**: POSIX semaphores are files of one page in /dev/shm. Either it is full, or it was made a few bytes large:
docker reads `--shm-size=64` as 64 bytes.
**Way out**: enlarge /dev/shm; write a unit.
**References**: python/cpython#93253.
"""

from __future__ import annotations

from launcher.diagnose.diagnosis import Diagnosis, line_with, shm_place
from launcher.diagnose.evidence import Evidence
from launcher.diagnose.shm_advice import larger_shm

CODE = "TL604"
NAME = "shm-full-semaphore"


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Match ENOSPC with SemLock in the same log."""
    saw = line_with(evidence.log, r"\[Errno 28\] No space left on device")
    if not saw or "SemLock" not in evidence.log:
        return None
    sentence = f"{shm_place(evidence)} has no room left for a semaphore; no disk is full"
    return Diagnosis(CODE, NAME, sentence, saw, larger_shm(evidence))
