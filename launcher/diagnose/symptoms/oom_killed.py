"""The kernel killed the job because the container reached its memory limit.

**What you see**: exit code 137 and OOMKilled true, or another exit code with OOMKilled true where only a child was
killed.
**Why**: /dev/shm is charged to the same limit as the processes and is not given back while its files live, so a
limit must hold both. Where the killed process was a child, the main process may go on and even end with 0, with
less done than it says.
**Way out**: raise resources.memory, or lower num_workers or prefetch_factor.
**References**: kubernetes/kubernetes#128339; kernel Documentation/admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

from launcher.diagnose.diagnosis import Diagnosis, memory_story, more_memory
from launcher.diagnose.evidence import Evidence

CODE = "TL610"
NAME = "oom-killed"
SIGKILL_EXIT = 137


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Match the engine's OOMKilled; a SIGKILL after a stop is something else."""
    if not evidence.oom_killed:
        return None
    if evidence.exit_code == SIGKILL_EXIT:
        sentence = f"the kernel killed the job at its memory limit: {memory_story(evidence)}"
    else:
        sentence = f"the kernel killed a process inside the job at its memory limit: {memory_story(evidence)}"
        if evidence.exit_code == 0:
            sentence += "; the job still ended with 0, so part of its work may be missing"
    saw = "the engine says OOMKilled true" if evidence.where.on_this_machine else "the pod's status says OOMKilled"
    return Diagnosis(CODE, NAME, sentence, saw, more_memory(evidence))
