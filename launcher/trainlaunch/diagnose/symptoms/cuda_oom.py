from __future__ import annotations

from dataclasses import replace

from trainlaunch.diagnose.base.case import LIKELY, Case, Diagnosis, Story, of_stories, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL661"
NAME = "cuda-oom"
_CUDA = LogPattern(
    "CUDA", r"CUDA out of memory|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY|Cuda failure.*out of memory"
)
_HIP = LogPattern(
    "rror", r"HIP out of memory|CUBLAS_STATUS_ALLOC_FAILED|OutOfMemoryError: (?:CUDA|HIP)|cudaErrorMemoryAllocation"
)
_NCCL = LogPattern("Cuda failure", r"Cuda failure (?:2 )?'out of memory'")

_NVMAP = LogPattern("NvMapMem", r"NvMapMem\w+: .*error 12")
_PINNED = LogPattern("CUDA", r"CUDA error: out of memory")
_UNIFIED = LogPattern("NV_ERR_NO_MEMORY", r"NVRM: .*NV_ERR_NO_MEMORY", beside=True)
_LOWER = "lower batch_size, or accumulate gradients; look with nvidia-smi whether another process uses the GPU"

_of_gpu = of_stories(
    CODE,
    NAME,
    (
        Story(
            (_NCCL,),
            "a GPU has no memory left for NCCL's buffers: what the job keeps there leaves none; /dev/shm is not it",
            "leave room on the GPU (a smaller batch_size, a smaller share for a cache of keys and values), or set env: "
            "{NCCL_BUFFSIZE: '2097152'} and NCCL_NVLS_ENABLE: '0'",
            commands=("nvidia-smi",),
        ),
        Story(
            (_NVMAP,),
            "the memory that GPU and host share has no room left: the page cache and the host's processes count",
            "free the host's share (`sync; echo 3 > /proc/sys/vm/drop_caches` as root), or lower batch_size",
            LIKELY,
        ),
        Story(
            (_CUDA, _HIP),
            "a GPU has no memory left; the container's memory and /dev/shm are not it",
            f"{_LOWER}; where much is reserved and unused set env: {{PYTORCH_CUDA_ALLOC_CONF: "
            f"'expandable_segments:True'}}",
            commands=("nvidia-smi",),
        ),
    ),
)


def diagnose(case: Case) -> Diagnosis | None:
    """Match the allocators' texts; where host and GPU have one memory, what the host holds is missing there."""
    found = _of_gpu(case)
    if found is None or case.first(_PINNED, within=r"pin_memory\.py|cudaHostAlloc") is not None:
        return None  # page-locked memory of the host
    unified = case.first(_UNIFIED)
    if unified is None:
        return found
    return replace(
        found,
        sentence="the memory that GPU and host share has no room left: the page cache and the host's processes count",
        fix="free the host's share (`sync; echo 3 > /proc/sys/vm/drop_caches` as root), give the container "
        f"a smaller memory and /dev/shm, or {_LOWER}",
        evidence=(*found.evidence, *seen(unified)),
    )
