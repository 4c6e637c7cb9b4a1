from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, of_one_text
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL635"
NAME = "nccl-attach"
_ATTACH = LogPattern(
    "shm", r"(?i)error while attaching to shared memory segment /dev/shm/nccl-|attach.*/dev/shm/nccl-.*size 0\b"
)
_OPEN = LogPattern("/dev/shm/nccl-", r"/dev/shm/nccl-.*No such file or directory")
_PEER = LogPattern("NCCL", r"peer mapping resources exhausted|Cuda failure.*invalid resource handle.*shm")

# Match the lines of attaching to a segment; its size is no matter.
diagnose = of_one_text(
    CODE,
    NAME,
    (_ATTACH, _OPEN, _PEER),
    "NCCL could not open another rank's segment: the two ranks don't share one /dev/shm, or the other has died",
    "look for an earlier error of another rank; where ranks of one host run in several containers, put them into "
    'one, or set env: {NCCL_SHM_DISABLE: "1"}; a larger /dev/shm does not help',
    LIKELY,
)
