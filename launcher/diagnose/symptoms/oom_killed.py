"""The kernel killed the job because the container reached its memory limit.

**What you see**: exit code 137 and OOMKilled true, or another exit code with OOMKilled true where only a child was
killed; `Memory cgroup out of memory: Killed process` in the kernel's log, `Detected 1 oom_kill event` from Slurm.
**Why**: /dev/shm is charged to the same limit as the processes and is not given back while its files live, so a
limit must hold both. In a pod its files outlive a restart of the container, which then starts with the limit nearly
used. Where the killed process was a child, the main process may go on and even end with 0, with less done than it says.
**Way out**: raise resources.memory, or lower num_workers or prefetch_factor.
**References**: kubernetes/kubernetes#128339; kernel Documentation/admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

from launcher.diagnose.case import Case
from launcher.diagnose.diagnosis import Diagnosis, Seen, memory_story, more_memory, seen
from launcher.diagnose.log_facts import Hit
from launcher.diagnose.texts import Text

CODE = "TL610"
NAME = "oom-killed"
SIGKILL_EXIT = 137
_REASON = Text("OOM", r"\bOOMKilled\b(?!\W+false)")
_KERNEL = Text("illed", r"(?:Memory cgroup out of memory|Out of memory|oom-kill:.*): Killed process \d+")
_CONSTRAINT = Text("OOM", r"OOM ?[Kk]ill(?:ed)? (?:event|detected)|CONSTRAINT_MEMCG")
_SLURM = Text("rror:", r"Detected \d+ oom[-_]kill event|Exceeded (?:job|step) memory limit")
_RAY = Text("OOM", r"killed due to (?:the node running low on memory|memory pressure \(OOM\))")


def diagnose(case: Case) -> Diagnosis | None:
    """Match the engine's OOMKilled, the kernel's, Slurm's and Ray's lines; a SIGKILL after a stop is another thing."""
    evidence = case.evidence
    hit = case.first(_REASON, _KERNEL, _CONSTRAINT, _SLURM, _RAY)
    if not evidence.oom_killed and hit is None:
        return None
    if case.exit_code in {SIGKILL_EXIT, None}:
        sentence = f"the kernel killed the job at its memory limit: {memory_story(evidence)}"
    else:
        sentence = f"the kernel killed a process inside the job at its memory limit: {memory_story(evidence)}"
        if case.exit_code == 0:
            sentence += "; the job still ended with 0, so part of its work may be missing"
    fix = more_memory(evidence)
    if evidence.memory and evidence.private_shm and evidence.shm_size >= evidence.memory:
        fix += "; in a pod the files in /dev/shm outlive a restart of the container: delete the pod"
    return Diagnosis(CODE, NAME, sentence, seen(_told(case), hit), fix)


def _told(case: Case) -> Seen | Hit | str | None:
    if not case.evidence.oom_killed:
        return None
    here = case.evidence.where.on_this_machine
    return "the engine says OOMKilled true" if here else "the pod's status says OOMKilled"
