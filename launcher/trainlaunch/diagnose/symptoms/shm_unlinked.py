from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL633"
NAME = "shm-unlinked"
_ENOENT = LogPattern("FileNotFoundError: [Errno 2]")
_OPENS = r"synchronize\.py.*_rebuild|SemLock\._rebuild"
_NAMED = LogPattern(
    "FileNotFoundError: [Errno 2]", r"No such file or directory: '/(?:psm_|wnsm_|mp-|sem\.|\d{6}_)[^/']*'"
)
_TORCH = LogPattern("could not unlink the shared memory", r"could not unlink the shared memory file <?/?torch_")


def diagnose(case: Case) -> Diagnosis | None:
    """Match ENOENT where a name is opened again."""
    hit = case.first(_ENOENT, within=_OPENS) or case.first(_NAMED, _TORCH)
    if hit is None:
        return None
    return Diagnosis(
        CODE,
        NAME,
        "a semaphore or segment was removed from /dev/shm while the job still used it",
        seen(hit),
        "ask whether the session that started the job was closed (`loginctl enable-linger USER` "
        "keeps its IPC), and let "
        "the parent live until its children have started; multiprocessing_context fork needs no names",
        LIKELY,
    )
