"""The container's user has a number and no name.

**What you see**: `KeyError: 'getpwuid(): uid not found: 1042'`; Python 3.13 says `OSError: No username set in the
environment`.
**Why**: `--user $(id -u)`, runAsUser or OpenShift's own numbers have no line in the image's /etc/passwd. HOME is then /
and USER is unset; torch's inductor cache and others ask for a name.
**Way out**: set USER and LOGNAME to anything, and HOME and TORCHINDUCTOR_CACHE_DIR to writable folders.
**References**: docs.python.org/3/library/getpass.html, getuser.
"""

from __future__ import annotations

from launcher.diagnose.case import Case
from launcher.diagnose.diagnosis import Diagnosis, seen
from launcher.diagnose.texts import Text

CODE = "TL667"
NAME = "user-without-name"
_UID = Text("ot found: ", r"getpwuid\(\): uid not found: \d+|no entry for uid \d+")
_NAME = Text("rror: No username set in the environment")


def diagnose(case: Case) -> Diagnosis | None:
    """Match pwd's and getpass's texts."""
    hit = case.first(_UID, _NAME)
    if hit is None:
        return None
    sentence = "the user that the container runs as has no name in the image"
    fix = "set env: {USER: user, LOGNAME: user, HOME: /tmp, TORCHINDUCTOR_CACHE_DIR: /tmp/inductor}"
    return Diagnosis(CODE, NAME, sentence, seen(hit), fix)
