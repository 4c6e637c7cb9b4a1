from __future__ import annotations

from trainlaunch.diagnose.base.case import Case
from trainlaunch.diagnose.base.diagnosis import Diagnosis, Seen, seen
from trainlaunch.diagnose.base.texts import Text

CODE = "TL622"
NAME = "deadline-exceeded"
_JOB = Text("eadline", r"active (?:on the node )?longer than (?:the )?specified deadline|\breason: DeadlineExceeded\b")
_SLURM = Text("rror", r"CANCELLED AT \S+ DUE TO TIME LIMIT")


def diagnose(case: Case) -> Diagnosis | None:
    """Match the controllers' words, and Slurm's."""
    evidence = case.evidence
    hit = case.first(_JOB, _SLURM)
    shown: object = None
    if "Deadline" in evidence.reason:
        shown = Seen("events", 0, f"{evidence.reason}: {evidence.words}".rstrip(": "))
    elif (event := case.event("DeadlineExceeded")) is not None:
        shown = Seen("events", 0, f"{event.reason}: {event.words}".rstrip(": "))
    told = shown if isinstance(shown, Seen) else hit
    if told is None:
        return None
    sentence = "the cluster ended the job because the time that it may take was over"
    fix = "raise active_deadline: it counts all attempts, and the time in which pods wait for a node"
    return Diagnosis(CODE, NAME, sentence, seen(told), fix)
