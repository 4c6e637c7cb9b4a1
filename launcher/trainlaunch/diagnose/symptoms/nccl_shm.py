from __future__ import annotations

import re

from trainlaunch.diagnose.base.case import CERTAIN, LIKELY, Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.diagnose.base.memory_advice import larger_shm, shm_commands, shm_place
from trainlaunch.units import GIB, human_size

CODE = "TL634"
NAME = "nccl-shm"
_CREATE = LogPattern(
    "/dev/shm/nccl-", r"Error while creating shared memory segment /dev/shm/nccl-\S* \(size [1-9]\d*\)"
)
_EXTEND = LogPattern("/dev/shm/nccl-", r"(?i)failed to extend /dev/shm/nccl-\S* to \d+ bytes")
_ENOSPC = LogPattern("/dev/shm/nccl-", r"/dev/shm/nccl-.*No space left on device")
_CALL = LogPattern("NCCL", r"Call to (?:posix_fallocate|fallocate|ftruncate) failed.*No space left")
_OTHER_ERRNO = r"error: (?!No space left)(?:(?!error: ).)+\(\d+\)|Permission denied|Too many open files|No such file"


def diagnose(case: Case) -> Diagnosis | None:
    """Match the lines of creating and extending a segment, with ENOSPC or no errno."""
    told = case.first(_ENOSPC, _CALL)
    silent = [each for each in case.hits(_CREATE, _EXTEND) if told is not None or not _has_other(each.text)]
    hit = told or (silent[0] if silent else None)
    if hit is None:
        return None
    evidence = case.evidence
    large = evidence.private_shm and evidence.shm_size >= GIB
    if told is None and large:
        fix = "run once with env: {NCCL_DEBUG: WARN}: CUDA's failure to map a segment ends in the same line"
        return Diagnosis(
            CODE,
            NAME,
            f"NCCL could not make a segment, though /dev/shm has {human_size(evidence.shm_size)}",
            seen(hit),
            f"{fix}; if it is full, {larger_shm(evidence)}",
            LIKELY,
        )
    sure = CERTAIN if told is not None or (evidence.private_shm and evidence.shm_size) else LIKELY
    return Diagnosis(
        CODE,
        NAME,
        f"{shm_place(evidence)} has no room for NCCL's buffers between the ranks",
        seen(hit),
        larger_shm(evidence),
        sure,
        shm_commands(evidence),
    )


def _has_other(line: str) -> bool:
    return re.search(_OTHER_ERRNO, line) is not None
