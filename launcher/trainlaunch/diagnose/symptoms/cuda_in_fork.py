from __future__ import annotations

from trainlaunch.diagnose.base.case import Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL649"
NAME = "cuda-in-fork"
_FORKED = LogPattern("CUDA in forked subprocess", r"Cannot re-initialize CUDA in forked subprocess")
_INIT = LogPattern("CUDA", r"CUDA error: initialization error|CUDA_ERROR_NOT_INITIALIZED")


def diagnose(case: Case) -> Diagnosis | None:
    """Match torch's text."""
    hit = case.first(_FORKED) or case.first(_INIT, within=r"_worker_loop|DataLoader worker|popen_fork")
    if hit is None:
        return None
    return Diagnosis(
        CODE,
        NAME,
        "a DataLoader worker touched CUDA, which does not survive the fork from the main process",
        seen(hit),
        "return CPU tensors from __getitem__ and collate_fn, and move them in the training loop with "
        ".to(device, non_blocking=True); multiprocessing_context spawn costs a CUDA context in each worker",
    )
