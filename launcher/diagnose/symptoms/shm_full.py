"""/dev/shm is full: torch, NCCL or a library could not reserve the pages it asked for.

**What you see**: `unable to allocate shared memory(shm) for file </torch_…>: No space left on device (28)`; torch
2.10 to 2.12 may end it in `Success (0)` or `Resource temporarily unavailable (11)`, old ones say `unable to write
to file </torch_…>`; NCCL says `failed to extend /dev/shm/nccl-…`.
**Why**: since 2.10 torch reserves the pages of a batch before it writes them. `</torch_…>` is a file in /dev/shm,
no disk is full; the texts with (0) and (11) report a stale errno.
**Way out**: enlarge /dev/shm, and the memory limit by as much.
**References**: pytorch/pytorch#161910, #176069, #10396.
"""

from __future__ import annotations

from launcher.diagnose.diagnosis import Diagnosis, line_with, shm_place
from launcher.diagnose.evidence import Evidence
from launcher.diagnose.shm_advice import larger_shm

CODE = "TL605"
NAME = "shm-full"
_TEXTS = (
    r"unable to (allocate shared memory\(shm\) for|resize) file <[^>]*>: .*\((0|11|28)\)"
    r"|unable to write to file </torch_[^>]*>(: .*\(28\))?\s*$"
    r"|/dev/shm/\S+.*No space left on device"
)


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Match the texts of a failed reservation; other errno values (2, 24) have other causes."""
    saw = line_with(evidence.log, _TEXTS)
    if not saw:
        return None
    stale = (
        ""
        if "(28)" in saw or "No space left" in saw or "(" not in saw.rpartition(">")[2]
        else ("; the error that the line ends in is a stale number of torch's")
    )
    sentence = f"{shm_place(evidence)} is full and had no room for more{stale}"
    return Diagnosis(CODE, NAME, sentence, saw, larger_shm(evidence))
