from __future__ import annotations

from trainlaunch.diagnose.base.case import Case
from trainlaunch.diagnose.base.diagnosis import LIKELY, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL645"
NAME = "pin-memory-thread"
_EXITED = LogPattern("in memory thread", r"Pin memory thread exited unexpectedly")
_CAUGHT = LogPattern("in memory thread", r"Caught [\w.]+ in pin memory thread")


def diagnose(case: Case) -> Diagnosis | None:
    """Match torch's two texts."""
    hit = case.first(_CAUGHT, _EXITED)
    if hit is None:
        return None
    sentence = "the thread that pins batches died; what killed it stands above that line"
    fix = "correct the exception above it; data_loader.pin_memory false shows whether pinning is the reason"
    return Diagnosis(CODE, NAME, sentence, seen(hit), fix, LIKELY)
