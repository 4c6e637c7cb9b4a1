"""A process wrote to a page of /dev/shm that could not be had: SIGBUS, in a worker or in the main process.

**What you see**: `Unexpected bus error encountered in worker`, `killed by signal: Bus error`, torchrun's `exitcode:
-7` or `Signal 7 (SIGBUS) received`, or exit code 135 without a traceback.
**Why**: torch before 2.10, `multiprocessing.shared_memory` and numpy's memmap make a sparse file, which always
works, and die at the first page that finds no room. Buffered output is lost with it.
Not every SIGBUS is a matter of /dev/shm: a memory-mapped file that was cut short, or lies on a full disk, does the
same. Where /dev/shm was never seen half full, that is said. A job may also end with 135 itself.
**Way out**: enlarge /dev/shm, or see to the mapped file. With `ipc: host` files of dead jobs may fill the host's.
**References**: pytorch/pytorch#5040; python/cpython#114389.
"""

from __future__ import annotations

from launcher.diagnose.diagnosis import CERTAIN, LIKELY, Diagnosis, line_with, shm_place
from launcher.diagnose.evidence import Evidence
from launcher.diagnose.shm_advice import larger_shm
from launcher.units import human_size

CODE = "TL606"
NAME = "shm-bus-error"
SIGBUS_EXIT = 135  # 128 + 7
_WORKER = r"Unexpected bus error encountered in worker|DataLoader worker \(.*\) is killed by signal: Bus error"
_PROCESS = r"Signal 7 \(SIGBUS\)|exitcode *: *-7\b|^Bus error( \(core dumped\))?\s*$|: line \d+: +\d+ Bus error\b"
_OTHER_MAPPINGS = (
    'set env: {PYTHONFAULTHANDLER: "1"} for the line, and look for a memory-mapped file that was cut short or is on a '
    "full disk"
)


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Match torch's and torchrun's texts, and exit code 135."""
    worker, process = line_with(evidence.log, _WORKER), line_with(evidence.log, _PROCESS)
    if not worker and not process and evidence.exit_code != SIGBUS_EXIT:
        return None
    who = "a DataLoader worker" if worker else "a process of the job" if process else "the job"
    how = "died of SIGBUS" if worker or process else "ended as by SIGBUS"
    saw = worker or process or "exit code 135, which is 128 + SIGBUS"
    filled = _was_half_full(evidence)
    if filled is False or (filled is None and not worker):
        sentence = f"{who} {how}: a page of mapped memory could not be had{_most_seen(evidence)}"
        return Diagnosis(CODE, NAME, sentence, saw, f"{_OTHER_MAPPINGS}; otherwise {larger_shm(evidence)}", LIKELY)
    sentence = f"{who} {how}: {shm_place(evidence)} had no page left for it"
    return Diagnosis(CODE, NAME, sentence, saw, larger_shm(evidence), CERTAIN if worker else LIKELY)


def _was_half_full(evidence: Evidence) -> bool | None:
    """Return whether /dev/shm was ever seen half full; None where nobody looked, or looked at another one."""
    if evidence.shm_peak is None or not evidence.shm_size or not evidence.private_shm:
        return None
    return 2 * evidence.shm_peak >= evidence.shm_size


def _most_seen(evidence: Evidence) -> str:
    if evidence.shm_peak is None or not evidence.private_shm:
        return f", in {shm_place(evidence)} or in a mapped file"
    return f"; {shm_place(evidence)} was seen with at most {human_size(evidence.shm_peak)} in it"
