"""How busy the GPU is: AMD's by a file of its driver, NVIDIA's by the driver's own library, which is in no package."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

_LIBRARY = "libnvidia-ml.so.1"
_NVIDIA = "{:08X}:{:02X}:{:02X}.0"  # as nvmlPciInfo_t.busId has it
_AMD = "/sys/bus/pci/devices/{:04x}:{:02x}:{:02x}.0/gpu_busy_percent"


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


def busy_reader() -> Callable[[], int | None] | None:
    """Return a function that reads how many percent of the driver's last period, a second at most, the GPU was busy.

    None without a GPU that this process already uses, or where its driver doesn't tell: a MIG instance, an old torch.
    """
    import torch

    if not (torch.cuda.is_available() and torch.cuda.is_initialized()):
        return None
    try:
        facts = torch.cuda.get_device_properties(torch.cuda.current_device())
        place = (facts.pci_domain_id, facts.pci_bus_id, facts.pci_device_id)
        return _by_file(_AMD.format(*place)) if torch.version.hip else _by_library(_NVIDIA.format(*place))
    except Exception:
        return None


def _by_file(path: str) -> Callable[[], int | None] | None:
    def read() -> int | None:
        try:
            with open(path, encoding="ascii") as file:
                return int(file.read())
        except (OSError, ValueError):
            return None

    return read if read() is not None else None


def _by_library(bus: str) -> Callable[[], int | None] | None:
    library: Any = ctypes.CDLL(_LIBRARY)
    device, found = ctypes.c_void_p(), _Utilization()
    if library.nvmlInit_v2() or library.nvmlDeviceGetHandleByPciBusId_v2(bus.encode(), ctypes.byref(device)):
        return None

    def read() -> int | None:
        failed = library.nvmlDeviceGetUtilizationRates(device, ctypes.byref(found))
        return None if failed else int(found.gpu)

    return read if read() is not None else None


def synchronize() -> None:
    """Wait for all that the GPU was given, so that a time measured around it is its own."""
    import torch

    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
