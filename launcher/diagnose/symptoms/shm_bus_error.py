"""A process wrote to a page of /dev/shm that could not be had: SIGBUS, in a worker or in the main process.

**What you see**: `Unexpected bus error encountered in worker`, `killed by signal: Bus error`, torchrun's `exitcode:
-7` or `Signal 7 (SIGBUS) received`, or exit code 135 without a traceback.
**Why**: torch before 2.10, `multiprocessing.shared_memory` and numpy's memmap make a sparse file, which always
works, and die at the first page that finds no room. Buffered output is lost with it.
**Way out**: enlarge /dev/shm. With `ipc: host` files of dead jobs may fill the host's.
**References**: pytorch/pytorch#5040; python/cpython#114389.
"""

from __future__ import annotations

from launcher.diagnose.diagnosis import CERTAIN, LIKELY, Diagnosis, larger_shm, line_with, shm_place
from launcher.run.evidence import Evidence

CODE = "TL606"
NAME = "shm-bus-error"
SIGBUS_EXIT = 135  # 128 + 7
_WORKER = r"Unexpected bus error encountered in worker|killed by signal: Bus error"
_PROCESS = r"Signal 7 \(SIGBUS\)|exitcode *: *-7\b|^Bus error"


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Match torch's and torchrun's texts, and exit code 135."""
    worker, process = line_with(evidence.log, _WORKER), line_with(evidence.log, _PROCESS)
    if not worker and not process and evidence.exit_code != SIGBUS_EXIT:
        return None
    who = "a DataLoader worker" if worker else "a process of the job"
    sentence = f"{who} died of SIGBUS: {shm_place(evidence)} had no page left for it"
    saw = worker or process or "exit code 135, which is 128 + SIGBUS"
    return Diagnosis(CODE, NAME, sentence, saw, larger_shm(evidence), CERTAIN if worker else LIKELY)
