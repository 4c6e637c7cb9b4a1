"""Nothing names a cause.

**What you see**: `no known cause`, with what is known: exit code, OOMKilled, /dev/shm, the last line of the log.
**Why**: the log has no line that is known, or was lost with a buffer (env PYTHONUNBUFFERED=1 keeps it); guessing would
send you the wrong way.
**Way out**: look at what stands last, run again with PYTHONFAULTHANDLER=1, give `--exit-code` and `--inspect`.
**References**: docs.python.org/3/library/faulthandler.html.
"""

from __future__ import annotations

from launcher.diagnose.case import Case
from launcher.diagnose.diagnosis import POSSIBLE, Diagnosis, Seen, seen

CODE = "TL669"
NAME = "unknown"


def diagnose(case: Case) -> Diagnosis | None:
    """Match a failure, by its code, that is asked about and that nothing else matches."""
    if not case.exit_code:
        return None
    last = next((each.strip() for each in reversed(case.facts.last) if each.strip()), "")
    shown = Seen("log", case.facts.lines, last) if last else None
    sentence = f"it ended with {case.exit_code}, and nothing in what is known names a cause"
    fix = (
        'run again with env: {PYTHONUNBUFFERED: "1", PYTHONFAULTHANDLER: "1"} and look at the last lines; `--inspect` '
        "and `--exit-code` tell more where a log is all there is"
    )
    return Diagnosis(CODE, NAME, sentence, seen(shown, f"exit code {case.exit_code}"), fix, POSSIBLE)
