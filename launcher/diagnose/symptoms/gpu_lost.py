"""A GPU failed, or was taken from the container, while it was used.

**What you see**: `GPU has fallen off the bus`, `Xid … 79`, `uncorrectable ECC error encountered`, `GPU is lost`, or
`Failed to initialize NVML: Unknown Error` in a container that had GPUs.
**Why**: hardware or its power failed; or systemd reloaded the container's cgroup and with it the rights to the device
files (`systemctl daemon-reload` with the systemd cgroup driver).
**Way out**: run elsewhere and have the machine looked at; for NVML's error update the container toolkit (CDI) or use
the cgroupfs driver.
**References**: docs.nvidia.com/deploy/xid-errors; NVIDIA/nvidia-container-toolkit#48.
"""

from __future__ import annotations

from launcher.diagnose.case import Case
from launcher.diagnose.diagnosis import Diagnosis, seen
from launcher.diagnose.texts import Text

CODE = "TL658"
NAME = "gpu-lost"
_XID = Text("Xid (", r"Xid .*: (?:48|63|64|74|79|94|95|119),|Xid.*fallen off the bus")
_ECC = Text(
    "rror",
    r"uncorrectable (?:NVLink |ECC )?error(?: was| detected)?(?: encountered)?|Unable to determine the device handle",
)
_LOST = Text("rror", r"GPU is lost|NVML.*: Unknown Error|CUDA_ERROR_ECC_UNCORRECTABLE")


def diagnose(case: Case) -> Diagnosis | None:
    """Match the driver's and NVML's texts."""
    hit = case.first(_XID, _ECC, _LOST)
    if hit is None:
        return None
    sentence = "a GPU failed or was taken from the container while it was used"
    fix = (
        "run on another machine and have this one looked at (`dmesg | grep -i xid`); after `NVML: "
        "Unknown Error` restart "
        "the container, and update the NVIDIA container toolkit"
    )
    return Diagnosis(
        CODE, NAME, sentence, seen(hit), fix, commands=("nvidia-smi -q -d ECC,PAGE_RETIREMENT", "dmesg | grep -i xid")
    )
