from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, of_one_text
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL637"
NAME = "map-count"
_MMAP = LogPattern("rror", r"unable to mmap \d+ bytes from file <[^<>]*>: Cannot allocate memory \(12\)")
_NAMED = LogPattern("rror", r"vm\.max_map_count|max virtual memory areas")

# Match ENOMEM out of mmap of a shared storage: the kernel kills a process that has no memory, mmap says so.
diagnose = of_one_text(
    CODE,
    NAME,
    (_MMAP, _NAMED),
    "a process has too many memory mappings, one for each shared tensor; neither memory nor /dev/shm is full",
    "return fewer, larger tensors, or keep `.clone()`s; on the host `sysctl -w vm.max_map_count=1048576` allows more",
    LIKELY,
    ("sysctl vm.max_map_count",),
)
