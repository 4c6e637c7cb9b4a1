"""A forked worker touched CUDA, which its parent had already started.

**What you see**: `Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the
'spawn' start method`, or `CUDA error: initialization error` in a worker.
**Why**: a CUDA context does not survive fork. Tensors are moved to the GPU in `__getitem__` or a collate function, or a
dataset keeps GPU tensors.
**Way out**: return CPU tensors and move them in the training loop (pin_memory, non_blocking). spawn, which the message
advises, works as well, and gives each worker a context of some 0.5 GB on the GPU.
**References**: pytorch.org/docs/stable/notes/multiprocessing.html, section CUDA in multiprocessing.
"""

from __future__ import annotations

from launcher.diagnose.case import Case
from launcher.diagnose.diagnosis import Diagnosis, seen
from launcher.diagnose.texts import Text

CODE = "TL649"
NAME = "cuda-in-fork"
_FORKED = Text("CUDA in forked subprocess", r"Cannot re-initialize CUDA in forked subprocess")
_INIT = Text("CUDA", r"CUDA error: initialization error|CUDA_ERROR_NOT_INITIALIZED")


def diagnose(case: Case) -> Diagnosis | None:
    """Match torch's text."""
    hit = case.first(_FORKED) or case.first(_INIT, within=r"_worker_loop|DataLoader worker|popen_fork")
    if hit is None:
        return None
    sentence = "a DataLoader worker touched CUDA, which does not survive the fork from the main process"
    fix = (
        "return CPU tensors from __getitem__ and collate_fn, and move them in the training loop with "
        ".to(device, non_blocking=True); multiprocessing_context spawn costs a CUDA context in each worker"
    )
    return Diagnosis(CODE, NAME, sentence, seen(hit), fix)
