"""The container, or this machine, has no GPU that CUDA can use.

**What you see**: `Found no NVIDIA driver on your system`, `No CUDA GPUs are available`, `Torch not compiled with CUDA
enabled`, `no CUDA-capable device is detected`, docker's `could not select device driver "" with capabilities:
[[gpu]]`, Kubernetes' `Insufficient nvidia.com/gpu`.
**Why**: a container sees no GPU unless it asks for some; the host lacks the NVIDIA container toolkit; or torch was
installed without CUDA.
**Way out**: set resources.gpus; install the toolkit on the host; use an image whose torch has CUDA.
**References**: docs.nvidia.com/datacenter/cloud-native/container-toolkit.
"""

from __future__ import annotations

from launcher.diagnose.case import Case
from launcher.diagnose.diagnosis import Diagnosis, seen
from launcher.diagnose.texts import Text

CODE = "TL657"
NAME = "gpu-missing"
_DRIVER = Text("NVIDIA", r"Found no NVIDIA driver on your system|NVIDIA-SMI has failed because it couldn't communicate")
_NONE = Text(
    "CUDA",
    r"No CUDA GPUs are available|no CUDA-capable device is detected|CUDA_ERROR_NO_DEVICE|CUDA unknown error - this may",
)
_BUILD = Text("CUDA", r"Torch not compiled with CUDA enabled")
_LOAD = Text(
    "CUDA", r"Attempting to deserialize object on (?:a )?CUDA device but torch\.cuda\.is_available\(\) is False"
)
_DOCKER = Text(
    "rror",
    r"could not select device driver .*capabilities: \[\[gpu|unknown or invalid runtime name: nvidia"
    r"|unresolvable CDI devices|failed to inject CDI devices",
)
_LIBRARY = Text("rror", r"libcuda\.so(?:\.1)?: cannot open shared object|libnvidia-ml\.so\.1: cannot open")
_CLUSTER = Text("nodes are available", r"nodes are available:.*Insufficient (?:nvidia|amd)\.com/gpu")


def _sentence(line: str) -> str:
    if "compiled" in line:
        return "the image's torch was built without CUDA"
    if "nodes are available" in line:
        return "no node of the cluster has as many free GPUs as the job asks for"
    if _DOCKER.found_in(line):
        return "the engine can't give GPUs to a container: the NVIDIA container toolkit is missing on this host"
    return "CUDA sees no GPU: the container asked for none, or this machine has none"


def _fix(line: str) -> str:
    if "compiled" in line:
        return "use an image whose torch has CUDA, as pytorch/pytorch:…-cuda…-runtime"
    if "nodes are available" in line:
        return "lower resources.gpus, or wait: `kubectl describe nodes` shows what is taken"
    if _DOCKER.found_in(line):
        return "install nvidia-container-toolkit, run `nvidia-ctk runtime configure --runtime=docker`, restart docker"
    return "set resources.gpus; where it is set, look with `nvidia-smi` on the machine itself"


def diagnose(case: Case) -> Diagnosis | None:
    """Match torch's, the driver's, docker's and the scheduler's texts."""
    hit = case.first(_DOCKER, _CLUSTER, _BUILD, _DRIVER, _NONE, _LOAD, _LIBRARY)
    if hit is None:
        return None
    sentence = _sentence(hit.text)
    fix = _fix(hit.text)
    return Diagnosis(CODE, NAME, sentence, seen(hit), fix, commands=("nvidia-smi",))
