from __future__ import annotations

from trainlaunch.diagnose.base.case import of_one_text
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL660"
NAME = "gpu-ordinal"
_ORDINAL = LogPattern("rror", r"invalid device ordinal|CUDA_ERROR_INVALID_DEVICE|Invalid device id")
_DUPLICATE = LogPattern("CUDA", r"Duplicate GPU detected ?: ?rank \d+ and rank \d+ both on CUDA device")

diagnose = of_one_text(
    CODE,
    NAME,
    (_ORDINAL, _DUPLICATE),
    "more ranks than GPUs in the container, or a GPU's number on the host: inside they count from 0",
    "let torchrun.nproc_per_node be the number of GPUs (or write {nproc_per_node} in command), "
    "and set resources.gpus to it",
)
