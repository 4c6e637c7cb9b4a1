from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, Story, of_stories
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL674"
NAME = "gpu-peer-denied"
_IMEX = LogPattern("Cuda failure", r"Cuda failure (?:800|CUDA_ERROR_NOT_PERMITTED)? ?'operation not permitted'")
_PIDFD = LogPattern("pidfd_", r"pidfd_(?:open|getfd)\b.{0,80}(?:Operation not permitted|EPERM|failed|not support)")

diagnose = of_stories(
    CODE,
    NAME,
    (
        Story(
            (_PIDFD,),
            "a process may not take over another's handle of GPU memory (pidfd_getfd), so tensors can't be shared",
            "give the container the capability SYS_PTRACE (`--cap-add SYS_PTRACE`), or share without it: set env: "
            "{PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:False'}",
            LIKELY,
        ),
        Story(
            (_IMEX,),
            "the container may not use the channel through which GPUs of several nodes share memory (IMEX)",
            "give it /dev/nvidia-caps-imex-channels (env NVIDIA_IMEX_CHANNELS: '0'; on Kubernetes a ComputeDomain), or "
            "go without: set env: {NCCL_MNNVL_ENABLE: '0'}, where that is not it {NCCL_CUMEM_ENABLE: '0'}",
            LIKELY,
            ("ls -l /dev/nvidia-caps-imex-channels",),
        ),
    ),
)
