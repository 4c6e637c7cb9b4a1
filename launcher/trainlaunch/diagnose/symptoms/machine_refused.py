from __future__ import annotations

from trainlaunch.diagnose.base.case import Case, Diagnosis, seen
from trainlaunch.diagnose.symptoms.config_refused import MARKER
from trainlaunch.exit_codes import EXIT_TRY_ELSEWHERE

CODE = "TL616"
NAME = "machine-refused"


def diagnose(case: Case) -> Diagnosis | None:
    """Match code 75 with the marker; without a code, the marker's own number."""
    hit = next((each for each in case.hits(MARKER) if f"({EXIT_TRY_ELSEWHERE})" in each.text), None)
    if hit is None or case.exit_code not in {EXIT_TRY_ELSEWHERE, None}:
        return None
    return Diagnosis(
        CODE,
        NAME,
        "the preflight stopped the job before its first line, because this machine can't run it now",
        seen(hit),
        "free what that line names and start again, or use another machine",
    )
