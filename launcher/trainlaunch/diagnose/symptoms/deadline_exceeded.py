from __future__ import annotations

from trainlaunch.diagnose.base.case import Case, Diagnosis, EvidenceLine, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL622"
NAME = "deadline-exceeded"
_JOB = LogPattern(
    "eadline", r"active (?:on the node )?longer than (?:the )?specified deadline|\breason: DeadlineExceeded\b"
)
_SLURM = LogPattern("rror", r"CANCELLED AT \S+ DUE TO TIME LIMIT")


def diagnose(case: Case) -> Diagnosis | None:
    """Match the controllers' words, and Slurm's."""
    evidence = case.evidence
    hit = case.first(_JOB, _SLURM)
    shown: object = None
    if "Deadline" in evidence.reason:
        shown = EvidenceLine("events", 0, f"{evidence.reason}: {evidence.words}".rstrip(": "))
    elif (event := case.event("DeadlineExceeded")) is not None:
        shown = EvidenceLine("events", 0, f"{event.reason}: {event.words}".rstrip(": "))
    told = shown if isinstance(shown, EvidenceLine) else hit
    if told is None:
        return None
    return Diagnosis(
        CODE,
        NAME,
        "the cluster ended the job because the time that it may take was over",
        seen(told),
        "raise active_deadline: it counts all attempts, and the time in which pods wait for a node",
    )
