from __future__ import annotations

from trainlaunch.diagnose.base.bus_error import died_of, had_room, most_seen, sigbus, was_half_full
from trainlaunch.diagnose.base.case import CERTAIN, LIKELY, Case, Diagnosis, seen
from trainlaunch.diagnose.base.memory_advice import larger_shm, shm_commands, shm_place

CODE = "TL606"
NAME = "shm-exhausted-bus-error"


def diagnose(case: Case) -> Diagnosis | None:
    """Match torch's and torchrun's texts, and exit code 135, unless /dev/shm had room."""
    found = sigbus(case)
    if found is None or had_room(case):
        return None
    filled = was_half_full(case)
    sure = filled or (filled is None and found.worker)
    page = f"{shm_place(case.evidence)} had no page left for it"
    doubt = f"a page of mapped memory could not be had, in {shm_place(case.evidence)} most likely{most_seen(case)}"
    fix = larger_shm(case.evidence)
    if not found.worker:
        fix += "; where it stays, look for a memory-mapped file that was cut short or lies on a full disk"
    return Diagnosis(
        CODE,
        NAME,
        f"{died_of(found)}: {page if sure else doubt}",
        seen(found.shown),
        fix,
        CERTAIN if sure else LIKELY,
        shm_commands(case.evidence),
    )
