"""A job of higher priority took the place.

**What you see**: reason `Preempted`, `PreemptionByScheduler` or `WorkloadEvictedDueToPreempted`, exit code 143 or 137;
Slurm's `CANCELLED AT … DUE TO PREEMPTION`; a cloud's notice that a spot instance is taken back.
**Why**: the cluster was full, and the priority class of the other job allows it to push this one out.
**Way out**: start it again from its last checkpoint, or give it a priority class of its own.
**References**: kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption.
"""

from __future__ import annotations

from launcher.diagnose.case import Case
from launcher.diagnose.diagnosis import Diagnosis, Seen, seen
from launcher.diagnose.texts import Text

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
