"""A process has as many memory mappings as the kernel allows, though memory is free.

**What you see**: `unable to mmap N bytes from file </torch_…>: Cannot allocate memory (12)` with free memory.
**Why**: each shared storage is a mapping, and a process may have vm.max_map_count of them, 65530 by default. Lists of
many small tensors, kept over batches, use them up.
**Way out**: return fewer, larger tensors, or copy what is kept (`.clone()`); or raise vm.max_map_count on the host.
**References**: kernel Documentation/admin-guide/sysctl/vm.rst, max_map_count.
"""

from __future__ import annotations

from launcher.diagnose.case import Case
from launcher.diagnose.diagnosis import LIKELY, Diagnosis, seen
from launcher.diagnose.texts import Text

CODE = "TL637"
NAME = "map-count"
_MMAP = Text("rror", r"unable to mmap \d+ bytes from file <[^<>]*>: Cannot allocate memory \(12\)")
_NAMED = Text("rror", r"vm\.max_map_count|max virtual memory areas")


def diagnose(case: Case) -> Diagnosis | None:
    """Match ENOMEM out of mmap of a shared storage: the kernel kills a process that has no memory, mmap says so."""
    hit = case.first(_MMAP, _NAMED)
    if hit is None:
        return None
    sentence = "a process has too many memory mappings, one for each shared tensor; neither memory nor /dev/shm is full"
    fix = (
        "return fewer, larger tensors, or keep `.clone()`s; on the host `sysctl -w "
        "vm.max_map_count=1048576` allows more"
    )
    return Diagnosis(CODE, NAME, sentence, seen(hit), fix, LIKELY, ("sysctl vm.max_map_count",))
