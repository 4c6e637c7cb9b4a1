from __future__ import annotations

import re

from trainlaunch.diagnose.base.case import CERTAIN, LIKELY, Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL641"
NAME = "disk-full"
_ENOSPC = LogPattern(
    "o space left on device", r"(?:\[[Ee]rrno 28\] |: |^|error: |error message = ')[Nn]o space left on device"
)
_QUOTA_ERROR = LogPattern("rror: [Errno 122]")
_TORCH = LogPattern(
    "rror", r"PytorchStreamWriter failed writing file|inline_container\.cc.*(?:unexpected pos|file write failed)"
)
_SHM = r"SemLock|synchronize\.py|shared_memory\.py|multiprocessing/reductions|_share_(?:fd|filename)|torch_\d|/dev/shm"
_PATH = re.compile(r"""device:? ['"]?(/[^'"\s]+)|(?<![^\s:'"])[^\s:'"/]*(/[^\s:'"]+): (?:write|[Nn]o space)""")


def diagnose(case: Case) -> Diagnosis | None:
    """Match ENOSPC and EDQUOT that neither their line nor their traceback ties to /dev/shm."""
    found = [
        each for each in case.hits(_ENOSPC, _QUOTA_ERROR, _TORCH) if not _of_shm(each.text) and not each.within(_SHM)
    ]
    if not found:
        return None
    hit = next((each for each in found if _PATH.search(each.text)), found[0])
    path = _PATH.search(hit.text)
    where = next((each for each in path.groups() if each), "") if path else ""
    what = "the disk quota is used up" if "quota" in hit.text else "the disk is full"
    sentence = f"{what} where {where} is; /dev/shm is not" if where else f"{what} that the job writes to"
    return Diagnosis(
        CODE,
        NAME,
        sentence,
        seen(hit),
        f"look with `df -h {where or '.'}` and `df -i {where or '.'}`, then free room there or write to a larger mount",
        CERTAIN if where else LIKELY,
    )


def _of_shm(line: str) -> bool:
    return re.search(r"torch_\d|/dev/shm|\(shm\)|NCCL|nccl-", line) is not None
