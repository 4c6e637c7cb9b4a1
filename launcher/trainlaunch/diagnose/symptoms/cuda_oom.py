from __future__ import annotations

from trainlaunch.diagnose.base.case import of_one_text
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL661"
NAME = "cuda-oom"
_CUDA = LogPattern(
    "CUDA", r"CUDA out of memory|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY|Cuda failure.*out of memory"
)
_HIP = LogPattern(
    "rror", r"HIP out of memory|CUBLAS_STATUS_ALLOC_FAILED|OutOfMemoryError: (?:CUDA|HIP)|cudaErrorMemoryAllocation"
)
_NCCL = LogPattern("NCCL", r"Cuda failure (?:2 )?'out of memory'")

diagnose = of_one_text(
    CODE,
    NAME,
    (_CUDA, _HIP, _NCCL),
    "a GPU has no memory left; the container's memory and /dev/shm are not it",
    "lower batch_size, or accumulate gradients; look with nvidia-smi whether another process "
    "uses the GPU; where much "
    "is reserved and unused set env: {PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True'}",
    commands=("nvidia-smi",),
)
