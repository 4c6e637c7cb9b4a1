from __future__ import annotations

from trainlaunch.diagnose.base.case import Case, Diagnosis, EvidenceLine, seen

CODE = "TL671"
NAME = "unhealthy"
_LIVENESS = "liveness probe failed: "
_STALL = "for one batch"


def diagnose(case: Case) -> Diagnosis | None:
    """Match a stop of ours for that reason, and a kubelet's."""
    words = case.evidence.unhealthy
    event = case.event("Unhealthy")
    if not words and event is not None and event.words.lower().startswith(_LIVENESS):
        words = event.words[len(_LIVENESS) :].removeprefix("unhealthy: ")
    if not words:
        return None
    fix = "put right what the sentence says; docs/health.md has all of them"
    if _STALL in words:
        fix = "while it waits, `trainlaunch doctor JOB` shows where; a batch that may take longer: raise stall_after"
    return Diagnosis(
        CODE,
        NAME,
        "the health check found the job unhealthy, and it was stopped",
        seen(EvidenceLine("inspect", 0, words)),
        fix,
    )
