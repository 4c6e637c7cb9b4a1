from __future__ import annotations

from trainlaunch.diagnose.base.case import POSSIBLE, Case, Diagnosis, EvidenceLine, seen
from trainlaunch.diagnose.base.container_snapshot import ContainerSnapshot
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.diagnose.base.memory_advice import larger_shm, shm_commands, shm_place
from trainlaunch.units import human_size

CODE = "TL605"
NAME = "shm-exhausted"
MAX_FULL = 0.97  # from which on the next batch may not fit
RESERVE = LogPattern("unable to allocate shared memory(shm)", r"\(shm\) for file <[^<>]*>: .*\((?:0|11|28)\)")
RESIZE = LogPattern("unable to resize file </", r"unable to resize file <[^<>]*>.*\((?:0|11|28)\)")
WRITE = LogPattern(
    "unable to write to file </torch_",
    r"unable to write to file </torch_[^<>]*>\s*$|unable to write to file </torch_[^<>]*>: .*\(28\)\s*$",
)
PATH = LogPattern(
    "o space left on device", r"/dev/shm/(?!nccl-)\S.*o space left on device|o space left on device.*/dev/shm/"
)
IN_TORCH = LogPattern("o space left on device", r"\[Errno 28\] No space left on device")
_SHARING = r"multiprocessing/(?:reductions|shared_memory)\.py|_share_(?:fd|filename)_cpu_|_posixshmem|share_memory"


def diagnose(case: Case) -> Diagnosis | None:
    """Match the texts of a failed reservation; other errno values (2, 12, 24) have other causes."""
    hit = case.first(RESERVE, RESIZE, WRITE, PATH) or case.first(IN_TORCH, within=_SHARING)
    if hit is None:
        return None
    told = "(28)" in hit.text or "o space left" in hit.text or "(" not in hit.text.rpartition(">")[2]
    stale = "" if told else "; the error that the line ends in is a stale number of torch's"
    return Diagnosis(
        CODE,
        NAME,
        f"{shm_place(case.evidence)} is full and had no room for more{stale}",
        seen(hit),
        larger_shm(case.evidence),
        commands=shm_commands(case.evidence),
    )


def diagnose_live(case: Case, look: ContainerSnapshot) -> Diagnosis | None:
    """Match a /dev/shm that is full now."""
    if look.shm is None or not look.shm.size or look.shm.used < MAX_FULL * look.shm.size:
        return None
    shown = EvidenceLine("machine", 0, f"/dev/shm holds {human_size(look.shm.used)} of {human_size(look.shm.size)}")
    fix = larger_shm(case.evidence)
    return Diagnosis(
        CODE,
        NAME,
        "/dev/shm is full: the next batch has no room, unless a worker frees one first",
        (shown,),
        fix,
        POSSIBLE,
        shm_commands(case.evidence),
    )
