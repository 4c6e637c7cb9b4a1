from __future__ import annotations

from trainlaunch.diagnose.base.case import Case
from trainlaunch.diagnose.base.diagnosis import LIKELY, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL637"
NAME = "map-count"
_MMAP = LogPattern("rror", r"unable to mmap \d+ bytes from file <[^<>]*>: Cannot allocate memory \(12\)")
_NAMED = LogPattern("rror", r"vm\.max_map_count|max virtual memory areas")


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
