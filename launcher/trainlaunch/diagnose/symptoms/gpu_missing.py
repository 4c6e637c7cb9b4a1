from __future__ import annotations

from trainlaunch.diagnose.base.case import CERTAIN, LIKELY, POSSIBLE, Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL657"
NAME = "gpu-missing"
_DRIVER = LogPattern(
    "NVIDIA", r"Found no NVIDIA driver on your system|NVIDIA-SMI has failed because it couldn't communicate"
)
_WARNED = LogPattern("NVIDIA", r"UserWarning: .*Found no NVIDIA driver", beside=True)  # by a torch that goes on without
_NONE = LogPattern(
    "CUDA",
    r"No CUDA GPUs are available|no CUDA-capable device is detected|CUDA_ERROR_NO_DEVICE|CUDA unknown error - this may",
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
_CLUSTER = LogPattern("nodes are available", r"nodes are available:.*Insufficient (?:nvidia|amd)\.com/gpu")


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
    "CUDA sees no GPU: the container asked for none, or this machine has none",
    "ask for GPUs (resources.gpus; `docker run --gpus all`, `podman run --device nvidia.com/gpu=all`, `apptainer exec "
    "--nv`, `sbatch --gpus`); where they are asked for, look with `nvidia-smi` on the machine itself",
)


def diagnose(case: Case) -> Diagnosis | None:
    """Match torch's, the driver's, docker's and the scheduler's texts; a warning of torch's ended nothing."""
    hits = case.hits(_CDI, _DOCKER, _CLUSTER, _BUILD, _DRIVER, _NONE, _LOAD, _LIBRARY, _BUSY, _ASKED, _LIGHTNING)
    warned = [each for each in hits if _WARNED.found_in(each.text)]
    hit = next((each for each in hits if each not in warned), None)
    sure = LIKELY if hit is not None and _BUSY.found_in(hit.text) else CERTAIN
    if hit is None and warned and case.exit_code is not None:
        hit, sure = warned[0], POSSIBLE
    if hit is None:
        return _asserted(case)
    sentence, fix = next((story for pattern, *story in _STORIES if pattern.found_in(hit.text)), _NONE_SEEN)
    return Diagnosis(CODE, NAME, sentence, seen(hit), fix, sure, commands=("nvidia-smi",))


def _asserted(case: Case) -> Diagnosis | None:
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
    return Diagnosis(
        CODE, NAME, _NONE_SEEN[0], seen(case.raised_seen()), _NONE_SEEN[1], LIKELY, commands=("nvidia-smi",)
    )
