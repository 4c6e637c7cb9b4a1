"""A process wrote to a page of /dev/shm that could not be had: SIGBUS, in a worker or in the main process.

**What you see**: `Unexpected bus error encountered in worker`, `killed by signal: Bus error`, torchrun's `exitcode:
-7` or `Signal 7 (SIGBUS) received`, or exit code 135 without a traceback.
**Why**: torch before 2.10, `multiprocessing.shared_memory` and numpy's memmap make a sparse file, which always
works, and die at the first page that finds no room. Buffered output is lost with it. Where workers is 0, other users of
/dev/shm did it: checkpoints staged there, `share_memory_()`, Ray, NCCL.
Not every SIGBUS is a matter of /dev/shm: see truncated-mmap, which speaks where /dev/shm was never seen half full.
**Way out**: enlarge /dev/shm. With `ipc: host` files of dead jobs may fill the host's.
**References**: pytorch/pytorch#5040; python/cpython#114389.
"""

from __future__ import annotations

from launcher.diagnose.bus_error import died_of, had_room, most_seen, sigbus, was_half_full
from launcher.diagnose.case import Case
from launcher.diagnose.diagnosis import CERTAIN, LIKELY, Diagnosis, seen, shm_place
from launcher.diagnose.shm_advice import larger_shm, shm_commands

CODE = "TL606"
NAME = "shm-exhausted-bus-error"


def diagnose(case: Case) -> Diagnosis | None:
    """Match torch's and torchrun's texts, and exit code 135, unless /dev/shm had room."""
    found = sigbus(case)
    if found is None or had_room(case):
        return None
    filled = was_half_full(case)
    sure = filled or (filled is None and found.worker)
    page = f"{shm_place(case.evidence)} had no page left for it"
    doubt = f"a page of mapped memory could not be had, in {shm_place(case.evidence)} most likely{most_seen(case)}"
    sentence = f"{died_of(found)}: {page if sure else doubt}"
    fix = larger_shm(case.evidence)
    if not found.worker:
        fix += "; where it stays, look for a memory-mapped file that was cut short or lies on a full disk"
    return Diagnosis(
        CODE, NAME, sentence, seen(found.shown), fix, CERTAIN if sure else LIKELY, shm_commands(case.evidence)
    )
