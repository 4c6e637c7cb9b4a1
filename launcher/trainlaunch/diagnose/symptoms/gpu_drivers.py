"""Drivers, toolkits and kernels that don't fit a GPU or its machine."""

from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, Story, of_stories
from trainlaunch.diagnose.base.log_patterns import LogPattern

_FABRIC = LogPattern("rror", r"system not yet initialized|CUDA_ERROR_SYSTEM_NOT_READY|cudaErrorSystemNotReady")
_NO_DRIVER = LogPattern(
    "rror",
    r"nvidia-container-cli: (?:initialization|detection) error: (?:nvml error: driver not loaded"
    r"|load library failed: libnvidia-ml\.so)",
)
_MISMATCH = LogPattern("Driver/library", r"Driver/library version mismatch")
_MISMATCH_ERROR = LogPattern("rror", r"driver/library version mismatch")
_OLD = LogPattern(
    "NVIDIA", r"NVIDIA driver on your system is too old|was built for NVIDIA Driver Release [\d.]+ or later"
)
_INSUFFICIENT = LogPattern(
    "CUDA",
    r"CUDA driver version is insufficient for CUDA runtime|CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"
    r"|CUDA_ERROR_UNSUPPORTED_PTX|PTX was compiled with an unsupported toolchain"
    r"|(?:CUDA driver error|Triton Error \[CUDA\]): (?:device kernel image is invalid|PTX)",
)
_FORWARD = LogPattern(
    "rror", r"forward compatibility was attempted on non supported HW|unsupported display driver / cuda driver"
)
_CONDITION = LogPattern("rror", r"unsatisfied condition: cuda ?>=|requirement error: .*cuda")
_KERNEL = LogPattern(
    "CUDA",
    r"no kernel image is available for execution on the device|is not compatible with the current PyTorch install",
)
_ARCH = LogPattern(
    "rror", r"no kernel image is available for execution|invalid device function|error: invalid value for --gpu-arch"
)
_TOOLKIT = LogPattern("rror", r"nvidia-container-cli: (?:initialization|detection) error")
_PTXAS = LogPattern("Value 'sm_", r"Value '(?P<arch>sm_\w+)' is not defined for option 'gpu-name'")
_NVCC = LogPattern("Unsupported gpu", r"Unsupported gpu architecture '(?P<arch>\w+)'")
_COUNT = LogPattern("rror", r"cudaGetDeviceCount\(\)\. .*Error (?!10[01]\b)(?P<number>\d{1,4}): (?P<words>[^.]{1,120})")
_LOOK = ("nvidia-smi",)
_FIT = (
    "use an image for this host's driver and GPU (`nvidia-smi` names both), or a machine with a newer driver; "
    "another attempt on this one gives the same"
)

_gpu_driver = of_stories(
    "TL659",
    "gpu-driver",
    (
        Story(
            (_FABRIC,),
            "the GPUs of this host are not ready: they are joined by NVSwitches, whose fabric manager does not run "
            "on the host, or has another version than the driver",
            "on the host start nvidia-fabricmanager of the driver's version (`systemctl status nvidia-fabricmanager`), "
            "or use another machine; neither the image nor --gpus is it",
            commands=("nvidia-smi -q | grep -A2 -i fabric",),
        ),
        Story(
            (_NO_DRIVER,),
            "this host has no NVIDIA driver where the container toolkit looks for it: no GPU can be given to a "
            "container",
            "install the driver on the host until `nvidia-smi` works there, or use a machine with GPUs; the image "
            "lacks "
            "nothing (under WSL the driver is that of Windows, and Docker of a snap sees none)",
            commands=_LOOK,
        ),
        Story(
            (_MISMATCH, _MISMATCH_ERROR),
            "the host's NVIDIA driver was updated, and its kernel module is still the old one",
            "reboot the host, or reload the nvidia modules there; nothing in the image can put it right",
            commands=_LOOK,
        ),
        Story(
            (_KERNEL, _ARCH),
            "torch in this image has no code for this host's GPU",
            "use an image whose torch is built for this GPU, for a new one that is a newer torch and CUDA (`python -c "
            "'import torch; print(torch.cuda.get_arch_list())'` shows what is built in), or another GPU",
            commands=_LOOK,
        ),
        Story(
            (_PTXAS, _NVCC),
            "the compiler of GPU code (ptxas, nvcc) in this image is older than this GPU (<arch>)",
            "use an image with a newer CUDA, Triton and torch; where the image has a newer ptxas set env: "
            "{TRITON_PTXAS_PATH: /usr/local/cuda/bin/ptxas}",
            commands=_LOOK,
        ),
        Story(
            (_OLD, _INSUFFICIENT, _FORWARD, _CONDITION),
            "this host's NVIDIA driver does not fit the CUDA of the image",
            _FIT,
            commands=_LOOK,
        ),
        Story((_TOOLKIT,), "the NVIDIA container toolkit could not bring the driver into the container", _FIT),
        Story(
            (_COUNT,),
            "CUDA can't start in this container: its driver answers with error <number> (<words>)",
            "look with `nvidia-smi` inside and on the host: after an update, a suspension or a lost GPU reload "
            "nvidia_uvm or reboot (WSL: `wsl --shutdown`); the container needs /dev/nvidia-uvm too",
            LIKELY,
            _LOOK,
        ),
    ),
)


SYMPTOMS = (_gpu_driver,)
