from __future__ import annotations

from trainlaunch.diagnose.base.case import POSSIBLE, Case, Diagnosis, EvidenceLine, seen

CODE = "TL669"
NAME = "unknown"


def diagnose(case: Case) -> Diagnosis | None:
    """Match a failure, by its code, that is asked about and that nothing else matches."""
    if not case.exit_code:
        return None
    last = next((each.strip() for each in reversed(case.facts.last) if each.strip()), "")
    shown = EvidenceLine("log", case.facts.lines, last) if last else None
    return Diagnosis(
        CODE,
        NAME,
        f"it ended with {case.exit_code}, and nothing in what is known names a cause",
        seen(shown, f"exit code {case.exit_code}"),
        'run again with env: {PYTHONUNBUFFERED: "1", PYTHONFAULTHANDLER: "1"} and look at the last lines; `--inspect` '
        "and `--exit-code` tell more where a log is all there is",
        POSSIBLE,
    )
