from __future__ import annotations

from trainlaunch.diagnose.base.case import Case
from trainlaunch.diagnose.base.diagnosis import Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL667"
NAME = "user-without-name"
_UID = LogPattern("ot found: ", r"getpwuid\(\): uid not found: \d+|no entry for uid \d+")
_NAME = LogPattern("rror: No username set in the environment")


def diagnose(case: Case) -> Diagnosis | None:
    """Match pwd's and getpass's texts."""
    hit = case.first(_UID, _NAME)
    if hit is None:
        return None
    sentence = "the user that the container runs as has no name in the image"
    fix = "set env: {USER: user, LOGNAME: user, HOME: /tmp, TORCHINDUCTOR_CACHE_DIR: /tmp/inductor}"
    return Diagnosis(CODE, NAME, sentence, seen(hit), fix)
