from __future__ import annotations

from trainlaunch.diagnose.base.case import Case
from trainlaunch.diagnose.base.diagnosis import Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL660"
NAME = "gpu-ordinal"
_ORDINAL = LogPattern("rror", r"invalid device ordinal|CUDA_ERROR_INVALID_DEVICE|Invalid device id")
_DUPLICATE = LogPattern("CUDA", r"Duplicate GPU detected ?: ?rank \d+ and rank \d+ both on CUDA device")


def diagnose(case: Case) -> Diagnosis | None:
    """Match CUDA's and NCCL's texts."""
    hit = case.first(_ORDINAL, _DUPLICATE)
    if hit is None:
        return None
    sentence = "more ranks than GPUs in the container, or a GPU's number on the host: inside they count from 0"
    fix = (
        "let torchrun.nproc_per_node be the number of GPUs (or write {nproc_per_node} in command), "
        "and set resources.gpus to it"
    )
    return Diagnosis(CODE, NAME, sentence, seen(hit), fix)
