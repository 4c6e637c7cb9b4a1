"""Native code crashed: SIGSEGV in the main process or in a worker.

**What you see**: exit code 139, or `Unexpected segmentation fault encountered in worker`.
**Why**: in a worker most often a native handle (LMDB, HDF5, OpenCV, a database) that was opened before the fork;
else a library that doesn't fit its CUDA driver or Python.
**Way out**: open such handles in the worker, at first use. Not a matter of /dev/shm.
**References**: pytorch.org/docs/stable/data.html, section Multi-process data loading.
"""

from __future__ import annotations

from launcher.diagnose.diagnosis import Diagnosis, line_with
from launcher.diagnose.evidence import Evidence

CODE = "TL613"
NAME = "segmentation-fault"
SIGSEGV_EXIT = 139
_WORKER = r"segmentation fault encountered in worker|killed by signal: Segmentation fault"
_PROCESS = r"Signal 11 \(SIGSEGV\)|exitcode *: *-11\b"


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Match torch's and torchrun's texts, and exit code 139."""
    worker, process = line_with(evidence.log, _WORKER), line_with(evidence.log, _PROCESS)
    if worker:
        sentence = "a DataLoader worker crashed in native code, often a handle (LMDB, HDF5, cv2) opened before the fork"
        return Diagnosis(CODE, NAME, sentence, worker, "open the handle inside the worker, at first use in __getitem__")
    if process or evidence.exit_code == SIGSEGV_EXIT:
        sentence = "the job crashed in native code"
        saw = process or "exit code 139, which is 128 + SIGSEGV"
        return Diagnosis(CODE, NAME, sentence, saw, 'set env: {PYTHONFAULTHANDLER: "1"} and run again for a traceback')
    return None
