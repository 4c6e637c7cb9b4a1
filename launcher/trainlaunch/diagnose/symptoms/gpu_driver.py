from __future__ import annotations

from trainlaunch.diagnose.base.case import Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL659"
NAME = "gpu-driver"
_OLD = LogPattern(
    "NVIDIA", r"NVIDIA driver on your system is too old|was built for NVIDIA Driver Release [\d.]+ or later"
)
_INSUFFICIENT = LogPattern(
    "CUDA",
    r"CUDA driver version is insufficient for CUDA runtime|CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"
    r"|CUDA_ERROR_UNSUPPORTED_PTX",
)
_FORWARD = LogPattern(
    "rror",
    r"forward compatibility was attempted on non supported HW"
    r"|unsupported display driver / cuda driver|system not yet initialized",
)
_CONDITION = LogPattern("rror", r"unsatisfied condition: cuda ?>=|requirement error: .*cuda")
_KERNEL = LogPattern(
    "CUDA",
    r"no kernel image is available for execution on the device|is not compatible with the current PyTorch install",
)
_ARCH = LogPattern("rror", r"no kernel image is available for execution|invalid device function")
_CAPABILITY = LogPattern("CUDA", r"with CUDA capability sm_\d+ is not compatible")
_TOOLKIT = LogPattern("rror", r"nvidia-container-cli: (?:initialization|detection) error|nvml error: driver not loaded")
_MISMATCH = LogPattern("rror", r"[Dd]river/library version mismatch")


def diagnose(case: Case) -> Diagnosis | None:
    """Match torch's, the image's and the driver's texts."""
    hit = case.first(_OLD, _INSUFFICIENT, _FORWARD, _CONDITION, _KERNEL, _ARCH, _CAPABILITY, _MISMATCH, _TOOLKIT)
    if hit is None:
        return None
    sentence = (
        "torch in this image has no code for this machine's GPU"
        if "kernel image" in hit.text or "capability" in hit.text or "device function" in hit.text
        else "this machine's NVIDIA driver does not fit the CUDA of the image"
    )
    return Diagnosis(
        CODE,
        NAME,
        sentence,
        seen(hit),
        "use an image for this machine's driver and GPU (`nvidia-smi` names both), or a machine with a newer driver; "
        "another attempt on this one gives the same",
        commands=("nvidia-smi",),
    )
