from __future__ import annotations

from trainlaunch.diagnose.base.case import Case, Diagnosis, seen
from trainlaunch.diagnose.symptoms.config_refused import MARKER
from trainlaunch.exit_codes import EXIT_FILES_WRONG, EXIT_TRY_ELSEWHERE

CODE = "TL615"
NAME = "own-exit-code"


def diagnose(case: Case) -> Diagnosis | None:
    """Match 75 and 78 without the marker."""
    if case.exit_code not in {EXIT_TRY_ELSEWHERE, EXIT_FILES_WRONG} or case.first(MARKER):
        return None
    shown = seen("no `preflight stopped` line in the log")
    return Diagnosis(
        CODE,
        NAME,
        f"the job itself ended with {case.exit_code}; the preflight had passed",
        shown,
        "look at the job's own last lines",
    )
