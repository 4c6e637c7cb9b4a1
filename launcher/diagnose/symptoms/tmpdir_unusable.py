"""Workers pass tensors through a socket in the temporary directory, and that directory can't hold one.

**What you see**: `No usable temporary directory found`, `AF_UNIX path too long`, or `could not generate a random
directory for manager socket`; out of a worker's feeder thread the first two hang the job for ever.
**Why**: Python puts the socket into TMPDIR, /tmp, /var/tmp or /usr/tmp. A read-only root has none of them writable,
and a socket's path may have 107 bytes.
**Way out**: mount a tmpfs on /tmp, and leave TMPDIR of the host out of the container.
**References**: rwth-i6/returnn#1571; unix(7).
"""

from __future__ import annotations

from launcher.diagnose.case import Case
from launcher.diagnose.diagnosis import Diagnosis, seen
from launcher.diagnose.texts import Text

CODE = "TL608"
NAME = "tmpdir-unusable"
NONE_USABLE = Text("rror", r"No usable temporary directory(?: name)? found")
TOO_LONG = Text("rror: AF_UNIX path too long")
MANAGER = Text("shm", r"could not generate a random directory for manager socket")


def diagnose(case: Case) -> Diagnosis | None:
    """Match the three texts."""
    hit = case.first(NONE_USABLE, TOO_LONG, MANAGER)
    if hit is None:
        return None
    hung = "; the run is hung and will not end by itself" if case.exit_code is None else ""
    sentence = f"the temporary directory can't hold the socket that workers pass tensors through{hung}"
    mount = "add `{type: tmpfs, target: /tmp}` to mounts, or " if case.evidence.where.starts_container else ""
    return Diagnosis(CODE, NAME, sentence, seen(hit), f"{mount}set env: {{TMPDIR: /tmp}}")
