from __future__ import annotations

from trainlaunch.diagnose.base.case import of_one_text
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL658"
NAME = "gpu-lost"
_XID = LogPattern("Xid (", r"Xid .*: (?:48|63|64|74|79|94|95|119),|Xid.*fallen off the bus")
_ECC = LogPattern(
    "rror",
    r"uncorrectable (?:NVLink |ECC )?error(?: was| detected)?(?: encountered)?|Unable to determine the device handle",
)
_LOST = LogPattern("rror", r"GPU is lost|NVML.*: Unknown Error|CUDA_ERROR_ECC_UNCORRECTABLE")

diagnose = of_one_text(
    CODE,
    NAME,
    (_XID, _ECC, _LOST),
    "a GPU failed or was taken from the container while it was used",
    "run on another machine and have this one looked at (`dmesg | grep -i xid`); after `NVML: "
    "Unknown Error` restart "
    "the container, and update the NVIDIA container toolkit",
    commands=("nvidia-smi -q -d ECC,PAGE_RETIREMENT", "dmesg | grep -i xid"),
)
