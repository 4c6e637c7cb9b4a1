from __future__ import annotations

from trainlaunch.diagnose.base.bus_error import died_of, had_room, most_seen, sigbus
from trainlaunch.diagnose.base.case import LIKELY, Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.diagnose.base.memory_advice import larger_shm

CODE = "TL627"
NAME = "truncated-mmap"
_SHORT = LogPattern("rror: mmap length is greater than file size")
_PARTS = LogPattern(
    "rror", r"SafetensorError: .*(?:incomplete metadata|MetadataIncompleteBuffer|InvalidHeader|header too)"
)
_ZIP = LogPattern("rror", r"PytorchStreamReader failed (?:reading|locating) .*central directory")
_LINE = 'set env: {PYTHONFAULTHANDLER: "1"} for the line that touched it'


def diagnose(case: Case) -> Diagnosis | None:
    """Match readers' own texts, and a SIGBUS where /dev/shm was seen with room."""
    hit = case.first(_SHORT, _PARTS, _ZIP)
    if hit is not None:
        return Diagnosis(
            CODE,
            NAME,
            "a file that is read has fewer bytes than it should: it was cut short, or is still being written",
            seen(hit),
            "compare its size with its source's, and copy it again",
        )
    found = sigbus(case)
    if found is None or not had_room(case):
        return None
    return Diagnosis(
        CODE,
        NAME,
        f"{died_of(found)}: a page of a mapped file could not be had{most_seen(case)}",
        seen(found.shown),
        f"{_LINE}: a file cut short, or on a full disk; otherwise {larger_shm(case.evidence)}",
        LIKELY,
    )
