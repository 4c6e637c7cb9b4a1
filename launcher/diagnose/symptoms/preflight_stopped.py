"""The preflight stopped the job before its first line: exit 78 or 75, with our marker in the log.

**What you see**: `trainlaunch: preflight stopped (78): …` as the last line.
**Why**: 78 says that the files ask for something that can't work (never retried), 75 that this machine is wrong
just now (another attempt or another machine may work). Without the marker the same codes are the job's own.
**Way out**: the preflight's own line has both numbers and the value to type.
**References**: docs/preflight.md; sysexits.h EX_CONFIG, EX_TEMPFAIL.
"""

from __future__ import annotations

import re

from launcher.container.preflight import STOP_MARKER
from launcher.diagnose.diagnosis import Diagnosis, line_with
from launcher.diagnose.evidence import Evidence
from launcher.errors import EXIT_FILES_WRONG, EXIT_TRY_ELSEWHERE

CODE = "TL601"
NAME = "preflight-stopped"


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Match codes 75 and 78 with the marker."""
    saw = line_with(evidence.log, re.escape(STOP_MARKER))
    if evidence.exit_code not in {EXIT_TRY_ELSEWHERE, EXIT_FILES_WRONG} or not saw:
        return None
    if evidence.exit_code == EXIT_FILES_WRONG:
        sentence = "the preflight stopped the job before its first line, because the job file can't work as it is"
        return Diagnosis(CODE, NAME, sentence, saw, "change what that line names; another attempt would stop there too")
    sentence = "the preflight stopped the job before its first line, because this machine can't run it now"
    return Diagnosis(CODE, NAME, sentence, saw, "free what that line names and start again, or use another machine")
