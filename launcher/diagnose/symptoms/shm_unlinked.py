"""A semaphore or segment that a process opens by its name was removed from /dev/shm before.

**What you see**: `FileNotFoundError: [Errno 2] No such file or directory` out of `synchronize.py … _rebuild`, or out
of `shared_memory.py` where a name is opened, with spawn or forkserver.
**Why**: systemd-logind removes all IPC of a user who logs out (RemoveIPC=yes); or the parent had ended, and its
resource tracker removed what it had made, before the child opened it.
**Way out**: keep the session (`loginctl enable-linger USER`), or keep the parent until its children have started; fork
inherits semaphores and needs no name.
**References**: logind.conf(5), RemoveIPC; python/cpython#82300.
"""

from __future__ import annotations

from launcher.diagnose.case import Case
from launcher.diagnose.diagnosis import LIKELY, Diagnosis, seen
from launcher.diagnose.texts import Text

CODE = "TL633"
NAME = "shm-unlinked"
_ENOENT = Text("FileNotFoundError: [Errno 2]")
_OPENS = r"synchronize\.py.*_rebuild|SemLock\._rebuild"
_NAMED = Text("FileNotFoundError: [Errno 2]", r"No such file or directory: '/(?:psm_|wnsm_|mp-|sem\.|\d{6}_)[^/']*'")


def diagnose(case: Case) -> Diagnosis | None:
    """Match ENOENT where a name is opened again."""
    hit = case.first(_ENOENT, within=_OPENS) or case.first(_NAMED)
    if hit is None:
        return None
    sentence = "a semaphore or segment was removed from /dev/shm before this process opened it"
    fix = (
        "ask whether the session that started the job was closed (`loginctl enable-linger USER` "
        "keeps its IPC), and let "
        "the parent live until its children have started; multiprocessing_context fork needs no names"
    )
    return Diagnosis(CODE, NAME, sentence, seen(hit), fix, LIKELY)
