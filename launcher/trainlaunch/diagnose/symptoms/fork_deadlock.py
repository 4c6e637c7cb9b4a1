from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, POSSIBLE, Case, Diagnosis, EvidenceLine, seen
from trainlaunch.diagnose.base.container_snapshot import (
    ContainerSnapshot,
    duration,
    is_in_lock,
    place,
    waits_for_batch,
    was_forked,
)
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL648"
NAME = "fork-deadlock"
FIX = (
    "set data_loader.multiprocessing_context to forkserver, or start threads (Ray, gRPC, cv2, tokenizers) after the "
    "workers"
)
_STACK = LogPattern(
    '  File "',
    r"File .*(?:threading|logging/__init__)\.py\"?,? line \d+,? in (?:acquire|_acquireLock|__enter__)\b",
)
_SPY = LogPattern(
    "hread", r"^Thread \S+ \((?:active|idle)\): .*|Thread 0x[0-9a-f]+ \(most recent call first\)", beside=True
)


def diagnose(case: Case) -> Diagnosis | None:
    """Match a dump of stacks that stand in a lock."""
    hit = case.first(_STACK) if case.exit_code is None and case.first(_SPY) else None
    if hit is None:
        return None
    return Diagnosis(CODE, NAME, "a worker waits for a lock that was held when it was forked", seen(hit), FIX, POSSIBLE)


def diagnose_live(case: Case, look: ContainerSnapshot) -> Diagnosis | None:
    """Match workers that were forked and stand in a lock while the job waits for them."""
    waiting = {each.pid for each in look.mains if waits_for_batch(look, each)}
    stuck = [each for each in look.workers if each.parent in waiting and is_in_lock(each) and was_forked(each)]
    if not stuck:
        return None
    first = stuck[0]
    sentence = f"worker {look.number(first)} has waited for a lock {place(first)}{duration(first)}: most often one "
    sentence += "that another thread held when the worker was forked, and that nobody will release"
    shown = EvidenceLine(
        "machine", 0, f"pid {first.pid}: in the kernel's {first.kernel}; {len(stuck)} workers stand so"
    )
    return Diagnosis(CODE, NAME, sentence, (shown,), FIX, LIKELY if first.stack else POSSIBLE)
