"""A job of higher priority took the node, or the quota, that the pod ran on.

**What you see**: condition DisruptionTarget with reason `PreemptionByScheduler`, or `Preempting`; with Kueue an evicted
workload.
**Why**: where nothing is free, the scheduler ends pods of lower priority to make room for those of higher.
**Way out**: a higher priority class, where you may use one, or another queue; checkpoints, so that little is lost.
**References**: kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption.
"""

from __future__ import annotations

from launcher.diagnose.diagnosis import Diagnosis
from launcher.diagnose.evidence import Evidence

CODE = "TL624"
NAME = "pod-preempted"
_REASONS = frozenset({"PreemptionByScheduler", "Preempting", "Preempted", "WorkloadEvictedDueToPreempted"})


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Match the scheduler's and the kubelet's words."""
    if evidence.reason not in _REASONS:
        return None
    saw = f"{evidence.reason}: {evidence.words}".rstrip(": ")
    sentence = "the pod was preempted: a job of higher priority took its place"
    fix = "start it again from its last checkpoint, with a higher kubernetes.priority_class where you may use one"
    return Diagnosis(CODE, NAME, sentence, saw, fix)
