"""The job asks for a GPU by a number that its container does not have.

**What you see**: `CUDA error: invalid device ordinal`, or NCCL's `Duplicate GPU detected : rank 1 and rank 0 both on
CUDA device`.
**Why**: more ranks than GPUs in the container, as with a fixed --nproc_per_node; or a number of the host's, while
inside they always count from 0.
**Way out**: as many ranks as GPUs: the torchrun block, or {nproc_per_node}; cuda:0 for the only GPU.
**References**: pytorch.org/docs/stable/generated/torch.cuda.set_device.html.
"""

from __future__ import annotations

from launcher.diagnose.case import Case
from launcher.diagnose.diagnosis import Diagnosis, seen
from launcher.diagnose.texts import Text

CODE = "TL660"
NAME = "gpu-ordinal"
_ORDINAL = Text("rror", r"invalid device ordinal|CUDA_ERROR_INVALID_DEVICE|Invalid device id")
_DUPLICATE = Text("CUDA", r"Duplicate GPU detected ?: ?rank \d+ and rank \d+ both on CUDA device")


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
