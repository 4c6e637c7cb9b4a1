"""How busy a GPU is, from what its driver offers: NVML's C functions by their signatures, AMD's file; else nothing."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from trainlaunch.inside.tune import meter

NOT_SUPPORTED = 3  # NVML_ERROR_NOT_SUPPORTED: a MIG instance


class _Utilization(ctypes.Structure):
    """nvmlUtilization_t of nvml.h."""

    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


def nvml(*, busy: int = 42, answer: int = 0, asked: list[bytes] | None = None) -> SimpleNamespace:
    """Return functions with the signatures of nvml.h; `answer` is what the query of utilization returns."""
    handle = 0x7F00DEADBEEF  # needs more than 32 bits
    init = ctypes.CFUNCTYPE(ctypes.c_int)
    by_bus = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p))
    rates = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

    def found(bus: bytes, device: Any) -> int:
        if asked is not None:
            asked.append(bus)
        device[0] = handle
        return 0

    def utilization(device: int, into: int) -> int:
        assert device == handle
        ctypes.cast(into, ctypes.POINTER(_Utilization))[0] = _Utilization(busy, 7)
        return answer

    return SimpleNamespace(
        nvmlInit_v2=init(lambda: 0),
        nvmlDeviceGetHandleByPciBusId_v2=by_bus(found),
        nvmlDeviceGetUtilizationRates=rates(utilization),
    )


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Stand in for torch with one GPU that is in use."""
    facts = SimpleNamespace(pci_domain_id=0, pci_bus_id=0x1B, pci_device_id=0)
    cuda = SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: True,
        current_device=lambda: 0,
        get_device_properties=lambda _: facts,
    )
    found = SimpleNamespace(cuda=cuda, version=SimpleNamespace(hip=None))
    monkeypatch.setitem(sys.modules, "torch", found)
    return found


def test_nvml_is_asked_for_the_gpu_by_its_place(torch: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may see it under another number."""
    asked: list[bytes] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda name: {"libnvidia-ml.so.1": nvml(asked=asked)}[name])
    read = meter.busy_reader()
    assert read is not None
    assert (read(), asked) == (42, [b"00000000:1B:00.0"])


def _without(name: str) -> SimpleNamespace:
    library = nvml()
    delattr(library, name)
    return library


@pytest.mark.parametrize(
    "library",
    [
        pytest.param(lambda: nvml(answer=NOT_SUPPORTED), id="mig"),
        pytest.param(lambda: _without("nvmlDeviceGetHandleByPciBusId_v2"), id="old-driver"),
        pytest.param(lambda: ctypes.CDLL("libnone-of-this-name.so"), id="no-library"),
    ],
)
def test_a_driver_that_does_not_tell_is_off(
    torch: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, library: Any
) -> None:
    """The search goes on without the figure."""
    load = ctypes.CDLL
    monkeypatch.setattr(ctypes, "CDLL", lambda name: load(name) if "none-of" in name else library())
    assert meter.busy_reader() is None


def test_an_old_torch_or_an_unused_gpu_is_off(torch: SimpleNamespace) -> None:
    """One that doesn't tell where the GPU is, and a script on CPUs of a machine with GPUs."""
    torch.cuda.get_device_properties = lambda _: SimpleNamespace()
    assert meter.busy_reader() is None
    torch.cuda.is_initialized = lambda: False
    assert meter.busy_reader() is None


def test_amds_file_is_read_and_may_be_empty(
    torch: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its driver leaves it empty at times: no figure then."""
    torch.version.hip = "6.4"
    monkeypatch.setattr(meter, "_AMD", f"{tmp_path}/{{:04x}}:{{:02x}}:{{:02x}}.0")
    assert meter.busy_reader() is None
    file = tmp_path / "0000:1b:00.0"
    file.write_text("87\n")
    read = meter.busy_reader()
    assert read is not None
    assert read() == 87
    file.write_text("")
    assert read() is None
