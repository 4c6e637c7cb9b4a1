from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.units import MIB, format_size, human_size, round_up

CODE = "TL636"
NAME = "ray-shm"
_TMP = LogPattern(
    "instead of /dev/shm",
    r"object store is using /tmp instead of /dev/shm because /dev/shm has only (\d{1,18}) bytes",
    beside=True,
)
_ANY_TMP = LogPattern("instead of /dev/shm", r"object store is using \S+ instead of /dev/shm", beside=True)
_FULL = LogPattern("rror", r"ObjectStoreFullError|plasma.*(?:No space left|ENOSPC)")
_EXCEEDS = LogPattern("shm", r"(?i)object store.*(?:exceeds|larger than).*/dev/shm")


def diagnose(case: Case) -> Diagnosis | None:
    """Match Ray's warnings with their number, and its error."""
    hit = case.first(_TMP) or case.first(_ANY_TMP, _EXCEEDS, _FULL)
    if hit is None:
        return None
    free = int(hit.match[1]) if hit.match.re.groups else 0
    if not free:
        return Diagnosis(
            CODE,
            NAME,
            "Ray's object store does not fit into /dev/shm",
            seen(hit),
            "lower object_store_memory, or name it in shm_extra with its size, so that /dev/shm holds it",
            LIKELY,
        )
    fits = format_size(round_up(max(free * 10 // 11 - MIB, MIB), MIB))
    return Diagnosis(
        CODE,
        NAME,
        f"Ray's object store is larger than the {human_size(free)} that are free in /dev/shm, so it lies on disk",
        seen(hit),
        f"set object_store_memory to at most {fits}, or make /dev/shm a tenth larger than it: shm_extra: "
        "[{name: ray, size: …}]; files of an earlier Ray in /dev/shm take room too",
    )
