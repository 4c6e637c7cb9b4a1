"""The job ran longer than its active_deadline, and the cluster ended it.

**What you see**: reason `DeadlineExceeded` and `Job was active longer than specified deadline`, mostly with exit code
143 or 137, or with none.
**Why**: activeDeadlineSeconds counts from the start of the Job, over all attempts, the time in which pods wait
included.
**Way out**: raise active_deadline, or find what made it slow or kept it waiting.
**References**: kubernetes.io/docs/concepts/workloads/controllers/job, section Job termination and cleanup.
"""

from __future__ import annotations

from launcher.diagnose.diagnosis import Diagnosis
from launcher.diagnose.evidence import Evidence

CODE = "TL622"
NAME = "deadline-exceeded"


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Match the controllers' words."""
    if "Deadline" not in evidence.reason:
        return None
    saw = f"{evidence.reason}: {evidence.words}".rstrip(": ")
    sentence = "the cluster ended the job because its active_deadline was over"
    fix = "raise active_deadline: it counts all attempts, and the time in which pods wait for a node"
    return Diagnosis(CODE, NAME, sentence, saw, fix)
