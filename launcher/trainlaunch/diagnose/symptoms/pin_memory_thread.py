from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, of_one_text
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL645"
NAME = "pin-memory-thread"
_EXITED = LogPattern("in memory thread", r"Pin memory thread exited unexpectedly")
_CAUGHT = LogPattern("in memory thread", r"Caught [\w.]+ in pin memory thread")

diagnose = of_one_text(
    CODE,
    NAME,
    (_CAUGHT, _EXITED),
    "the thread that pins batches died; what killed it stands above that line",
    "correct the exception above it; data_loader.pin_memory false shows whether pinning is the reason",
    LIKELY,
)
