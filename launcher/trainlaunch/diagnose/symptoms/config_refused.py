from __future__ import annotations

from trainlaunch.container.preflight import STOP_MARKER
from trainlaunch.diagnose.base.case import Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.exit_codes import EXIT_FILES_WRONG

CODE = "TL601"
NAME = "config-refused"
MARKER = LogPattern(STOP_MARKER)


def diagnose(case: Case) -> Diagnosis | None:
    """Match code 78 with the marker; without a code, the marker's own number."""
    hit = next((each for each in case.hits(MARKER) if f"({EXIT_FILES_WRONG})" in each.text), None)
    if hit is None or case.exit_code not in {EXIT_FILES_WRONG, None}:
        return None
    return Diagnosis(
        CODE,
        NAME,
        "the preflight stopped the job before its first line, because the job file can't work as it is",
        seen(hit),
        "change what that line names; another attempt would stop there too",
    )
