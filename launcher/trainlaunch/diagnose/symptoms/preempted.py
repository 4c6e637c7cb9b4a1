from __future__ import annotations

from trainlaunch.diagnose.base.case import Case
from trainlaunch.diagnose.base.diagnosis import Diagnosis, Seen, seen
from trainlaunch.diagnose.base.texts import Text

CODE = "TL624"
NAME = "preempted"
_REASONS = (
    "PreemptionByScheduler",
    "PreemptionByKubeScheduler",
    "Preempting",
    "Preempted",
    "WorkloadEvictedDueToPreempted",
    "EvictedDueToPreempted",
)
_SLURM = Text("rror", r"CANCELLED AT \S+ DUE TO PREEMPTION")
_EVENT = Text("reempt", r"\bPreempted by (?:pod |a pod |[\w-]+/)|PreemptionBy(?:Kube)?Scheduler|EvictedDueToPreempted")
_SPOT = Text("reempt", r"(?i)instance (?:was|is being|has been) preempted|preemption notice")


def diagnose(case: Case) -> Diagnosis | None:
    """Match the scheduler's and the kubelet's words, Slurm's, and a cloud's."""
    event = case.event(*_REASONS)
    hit = case.first(_SLURM, _EVENT, _SPOT)
    if event is None and hit is None:
        return None
    shown = Seen("events", 0, f"{event.reason}: {event.words}".rstrip(": ")) if event is not None else hit
    sentence = "the job was preempted: one of higher priority took its place"
    fix = "start it again from its last checkpoint, with a higher kubernetes.priority_class where you may use one"
    return Diagnosis(CODE, NAME, sentence, seen(shown), fix)
