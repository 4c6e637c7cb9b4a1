from __future__ import annotations

from trainlaunch.diagnose.base.case import Case, Diagnosis, EvidenceLine, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

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
_SLURM = LogPattern("rror", r"CANCELLED AT \S+ DUE TO PREEMPTION")
_EVENT = LogPattern(
    "reempt", r"\bPreempted by (?:pod |a pod |[\w-]+/)|PreemptionBy(?:Kube)?Scheduler|EvictedDueToPreempted"
)
_SPOT = LogPattern("reempt", r"(?i)instance (?:was|is being|has been) preempted|preemption notice")


def diagnose(case: Case) -> Diagnosis | None:
    """Match the scheduler's and the kubelet's words, Slurm's, and a cloud's."""
    event = case.event(*_REASONS)
    hit = case.first(_SLURM, _EVENT, _SPOT)
    if event is None and hit is None:
        return None
    shown = EvidenceLine("events", 0, f"{event.reason}: {event.words}".rstrip(": ")) if event is not None else hit
    return Diagnosis(
        CODE,
        NAME,
        "the job was preempted: one of higher priority took its place",
        seen(shown),
        "start it again from its last checkpoint, with a higher kubernetes.priority_class where you may use one",
    )
