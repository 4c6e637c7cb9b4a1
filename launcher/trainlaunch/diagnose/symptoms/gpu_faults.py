"""GPUs that are missing, taken, lost or not shared."""

from __future__ import annotations

import re

from trainlaunch.diagnose.base.case import (
    CERTAIN,
    LIKELY,
    POSSIBLE,
    Case,
    Story,
    Symptom,
    Told,
    of_one_text,
    of_stories,
    seen,
)
from trainlaunch.diagnose.base.log_patterns import LogPattern

_DRIVER = LogPattern(
    "NVIDIA", r"Found no NVIDIA driver on your system|NVIDIA-SMI has failed because it couldn't communicate"
)
_WARNED = re.compile(r"UserWarning: |failed call to cuInit")  # by a torch, or a TensorFlow, that goes on without
_NONE = LogPattern(
    "CUDA",
    r"No CUDA GPUs are available|no CUDA-capable device is detected|CUDA_ERROR_NO_DEVICE|CUDA unknown error - this may"
    r"|CUDA driver initialization failed",
)
_ASKED = LogPattern(
    "rror",
    r"no GPU resources available|ProcessGroupNCCL is only supported with GPUs|Failed to infer device type"
    r"|No HIP GPUs are available|no ROCm-capable device|NVML Shared Library Not Found|NVMLError_LibraryNotFound"
    r"|[Yy]our setup doesn't support bf16/gpu|mixed precision requires a GPU|No GPU found\. A GPU is needed"
    r"|backend nccl.{0,40} is not available",
)
_LIGHTNING = LogPattern("xception", r"No supported gpu backend found")
_BUILD = LogPattern("CUDA", r"Torch not compiled with CUDA enabled")
_LOAD = LogPattern(
    "CUDA", r"Attempting to deserialize object on (?:a )?CUDA device but torch\.cuda\.is_available\(\) is False"
)
_DOCKER = LogPattern(
    "rror",
    r"could not select device driver .*capabilities: \[\[gpu|unknown or invalid runtime name: nvidia"
    r"|failed to inject CDI devices",
)
_CDI = LogPattern("rror", r"unresolvable CDI devices (?P<device>[\w./=-]+)")
_LIBRARY = LogPattern("rror", r"libcuda\.so(?:\.1)?: cannot open shared object|libnvidia-ml\.so\.1: cannot open")
_BUSY = LogPattern(
    "CUDA", r"CUDA(?:-capable)? device(?:\(s\)|s) (?:is/)?are busy or unavailable|CUDA_ERROR_DEVICE_UNAVAILABLE"
)
_NO_FILES = LogPattern("Could not find any nv", beside=True)  # Apptainer's, of a host without a driver
_CLUSTER = LogPattern("nodes are available", r"nodes are available:.*Insufficient (?:nvidia|amd)\.com/gpu")

_RAY = LogPattern("node types can fulfill", r"No available node types can fulfill resource requests? .*'GPU'")


# Pattern, what happened, what to type; the first that a line has counts.
_STORIES = (
    (
        _BUILD,
        "the image's torch was built without CUDA",
        "use an image whose torch has CUDA, as pytorch/pytorch:…-cuda…-runtime",
    ),
    (
        _CLUSTER,
        "no node of the cluster has as many free GPUs as the job asks for",
        "lower resources.gpus, or wait: `kubectl describe nodes` shows what is taken",
    ),
    (
        _RAY,
        "no node of the Ray cluster has as many GPUs as a task or an actor asks for, so it waits",
        "ask for less, or start Ray where the GPUs are (`ray start --num-gpus N`); `ray status` shows what it has",
    ),
    (
        _CDI,
        "the engine knows no device of that CDI name: this user can read no CDI specification of the GPUs",
        "write one as root, `nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`, and look with `nvidia-ctk cdi "
        "list`",
    ),
    (
        _DOCKER,
        "the engine can't give GPUs to a container: the NVIDIA container toolkit is missing on this host",
        "install nvidia-container-toolkit, run `nvidia-ctk runtime configure --runtime=docker`, restart docker",
    ),
    (
        _BUSY,
        "the GPU takes no more processes: one holds it alone (compute mode) or fills its memory, or the GPU hangs",
        "end what holds the GPU (`nvidia-smi` shows it), or let it be shared: `nvidia-smi -c DEFAULT` as root",
    ),
)
_NONE_SEEN = (
    "CUDA sees no GPU: the container asked for none, or this host has none",
    "ask for GPUs (resources.gpus; `docker run --gpus all`, `podman run --device nvidia.com/gpu=all`, `apptainer exec "
    "--nv`, `sbatch --gpus`); where they are asked for, look with `nvidia-smi` on the machine itself",
)


def _gpu_missing(case: Case) -> Told | None:
    """Match torch's, the driver's, docker's and the scheduler's texts; a warning of torch's ended nothing."""
    hits = case.hits(_CDI, _DOCKER, _CLUSTER, _RAY, _BUILD, _DRIVER, _NONE, _LOAD, _LIBRARY, _BUSY, _ASKED, _LIGHTNING)
    warned = [each for each in hits if _WARNED.search(each.text)]
    hit = next((each for each in hits if each not in warned), None)
    sure = LIKELY if hit is not None and (_BUSY.found_in(hit.text) or _RAY.found_in(hit.text)) else CERTAIN
    if hit is None and warned and case.exit_code is not None:
        hit, sure = warned[0], POSSIBLE
    if hit is None:
        return _asserted(case)
    sentence, fix = next((story for pattern, *story in _STORIES if pattern.found_in(hit.text)), _NONE_SEEN)
    no_files = case.first(_NO_FILES) if sentence == _NONE_SEEN[0] else None
    if no_files is not None:
        sentence = "--nv was given, and Apptainer found no driver on this host: it has no GPU, as a login node"
        fix = "start it where a GPU is, by Slurm `srun --gpus 1 apptainer exec --nv …`; there look with `nvidia-smi`"
    return Told(sentence, seen(hit, no_files), fix, sure, commands=("nvidia-smi",))


def _asserted(case: Case) -> Told | None:
    """Match a script's own check."""
    raised = case.raised
    frame = raised.user_frame if raised is not None else None
    if (
        raised is None
        or frame is None
        or raised.short_type != "AssertionError"
        or "cuda.is_available()" not in frame.code
    ):
        return None
    return Told(_NONE_SEEN[0], seen(case.raised_seen()), _NONE_SEEN[1], LIKELY, commands=("nvidia-smi",))


_XID = LogPattern("Xid (", r"Xid .*: (?:48|63|64|74|79|94|95|119),|Xid.*fallen off the bus")
_ECC = LogPattern(
    "rror",
    r"uncorrectable (?:NVLink |ECC )?error(?: was| detected)?(?: encountered)?|Unable to determine the device handle",
)
_LOST = LogPattern("rror", r"GPU is lost|NVML.*: Unknown Error|CUDA_ERROR_ECC_UNCORRECTABLE")

_gpu_lost = of_one_text(
    "TL658",
    "gpu-lost",
    (_XID, _ECC, _LOST),
    "a GPU failed or was taken from the container while it was used",
    "run on another machine and have this one looked at (`dmesg | grep -i xid`); after `NVML: "
    "Unknown Error` restart "
    "the container, and update the NVIDIA container toolkit",
    commands=("nvidia-smi -q -d ECC,PAGE_RETIREMENT", "dmesg | grep -i xid"),
)


_ORDINAL = LogPattern("rror", r"invalid device ordinal|CUDA_ERROR_INVALID_DEVICE|Invalid device id")
_DUPLICATE = LogPattern("CUDA", r"Duplicate GPU detected ?: ?rank \d+ and rank \d+ both on CUDA device")

_gpu_ordinal = of_one_text(
    "TL660",
    "gpu-ordinal",
    (_ORDINAL, _DUPLICATE),
    "more ranks than GPUs in the container, or a GPU's number on the host: inside they count from 0",
    "let torchrun.nproc_per_node be the number of GPUs (or write {nproc_per_node} in command), "
    "and set resources.gpus to it",
)


_IMEX = LogPattern("Cuda failure", r"Cuda failure (?:800|CUDA_ERROR_NOT_PERMITTED)? ?'operation not permitted'")
_PIDFD = LogPattern("rror", r"pidfd_(?:open|getfd)\b.{0,80}(?:Operation not permitted|EPERM|failed|not support)")

_gpu_peer_denied = of_stories(
    "TL674",
    "gpu-peer-denied",
    (
        Story(
            (_PIDFD,),
            "a process may not use another's handle of GPU memory (pidfd_getfd), so tensors can't be shared",
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


_FORKED = LogPattern("CUDA in forked subprocess", r"Cannot re-initialize CUDA in forked subprocess")
_INIT = LogPattern("CUDA", r"CUDA error: initialization error|CUDA_ERROR_NOT_INITIALIZED")
_TOUCHED = (
    "a DataLoader worker touched CUDA, which does not survive the fork from the main process",
    "return CPU tensors from __getitem__ and collate_fn, and move them in the training loop with "
    ".to(device, non_blocking=True); multiprocessing_context spawn costs a CUDA context in each worker",
)
_IN_WORKER = r"_worker_loop|DataLoader worker|popen_fork"
_cuda_in_fork = of_stories(
    "TL649", "cuda-in-fork", (Story((_FORKED,), *_TOUCHED), Story((_INIT,), *_TOUCHED, within=_IN_WORKER))
)


SYMPTOMS = (
    Symptom("TL657", "gpu-missing", _gpu_missing),
    _gpu_lost,
    _gpu_ordinal,
    _gpu_peer_denied,
    _cuda_in_fork,
)
