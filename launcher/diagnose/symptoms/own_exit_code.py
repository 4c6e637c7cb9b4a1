"""The job itself ended with 75 or 78; the preflight had passed.

**What you see**: exit code 75 or 78 without the preflight's marker.
**Why**: both codes are also the preflight's, whose last line then starts with `trainlaunch: preflight stopped`.
**Way out**: look at the job's own last lines.
**References**: docs/preflight.md.
"""

from __future__ import annotations

from launcher.container.preflight import STOP_MARKER
from launcher.diagnose.diagnosis import Diagnosis
from launcher.diagnose.evidence import Evidence
from launcher.errors import EXIT_FILES_WRONG, EXIT_TRY_ELSEWHERE

CODE = "TL615"
NAME = "own-exit-code"


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Match 75 and 78 without the marker."""
    if evidence.exit_code not in {EXIT_TRY_ELSEWHERE, EXIT_FILES_WRONG} or STOP_MARKER in evidence.log:
        return None
    sentence = f"the job itself ended with {evidence.exit_code}; the preflight had passed"
    return Diagnosis(CODE, NAME, sentence, "no `preflight stopped` line in the log", "look at the job's own last lines")
