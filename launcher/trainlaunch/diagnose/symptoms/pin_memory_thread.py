from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, Story, of_stories
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL645"
NAME = "pin-memory-thread"
_EXITED = LogPattern("in memory thread", r"Pin memory thread exited unexpectedly")
_CAUGHT = LogPattern("in memory thread", r"Caught [\w.]+ in pin memory thread")

_NO_MEMORY = LogPattern("rror", r"CUDA error: out of memory|cudaHostAlloc|CUDA error: OS call failed")

diagnose = of_stories(
    CODE,
    NAME,
    (
        Story(
            (_NO_MEMORY,),
            "the host's memory could not be locked for a batch (pinned memory); the GPU's own memory is not it",
            "set pin_memory=False in the DataLoader, or lower batch_size or prefetch_factor; WSL lets little memory be "
            "locked: raise memory= in .wslconfig",
            LIKELY,
            within=r"pin_memory\.py|cudaHostAlloc",
        ),
        Story(
            (_CAUGHT, _EXITED),
            "the thread that pins batches died; what killed it stands above that line",
            "correct the exception above it; data_loader.pin_memory false shows whether pinning is the reason",
            LIKELY,
        ),
    ),
)
