from __future__ import annotations

from trainlaunch.diagnose.base.case import Case
from trainlaunch.diagnose.base.diagnosis import Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL651"
NAME = "main-guard"
_BOOT = LogPattern("rror:", r"An attempt has been made to start a new process before")
_BARE = LogPattern("new process before the", r"An attempt has been made to start a new process before")


def diagnose(case: Case) -> Diagnosis | None:
    """Match multiprocessing's text."""
    hit = case.first(_BARE)
    if hit is None:
        return None
    sentence = "the script has no main guard, so each worker started the whole script again"
    fix = (
        'put the script\'s own calls below `if __name__ == "__main__":`; with '
        "multiprocessing_context fork none is needed"
    )
    return Diagnosis(CODE, NAME, sentence, seen(hit), fix)
