"""The thread that copies batches to page-locked memory has ended, and the main process noticed.

**What you see**: `Pin memory thread exited unexpectedly`, or `Caught … in pin memory thread for device N`.
**Why**: the thread opens what workers shared, and pins it; it dies of what goes wrong there: no file descriptor, a
removed segment, CUDA out of memory, a batch whose `pin_memory` method raises. Its own exception stands above.
**Way out**: correct what stands above; pin_memory false shows whether pinning itself is the reason.
**References**: torch/utils/data/_utils/pin_memory.py.
"""

from __future__ import annotations

from launcher.diagnose.case import Case
from launcher.diagnose.diagnosis import LIKELY, Diagnosis, seen
from launcher.diagnose.texts import Text

CODE = "TL645"
NAME = "pin-memory-thread"
_EXITED = Text("in memory thread", r"Pin memory thread exited unexpectedly")
_CAUGHT = Text("in memory thread", r"Caught [\w.]+ in pin memory thread")


def diagnose(case: Case) -> Diagnosis | None:
    """Match torch's two texts."""
    hit = case.first(_CAUGHT, _EXITED)
    if hit is None:
        return None
    sentence = "the thread that pins batches died; what killed it stands above that line"
    fix = "correct the exception above it; data_loader.pin_memory false shows whether pinning is the reason"
    return Diagnosis(CODE, NAME, sentence, seen(hit), fix, LIKELY)
