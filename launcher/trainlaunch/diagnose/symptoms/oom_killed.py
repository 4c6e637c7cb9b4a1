from __future__ import annotations

from trainlaunch.diagnose.base.case import POSSIBLE, Case, Diagnosis, EvidenceLine, seen
from trainlaunch.diagnose.base.container_snapshot import ContainerSnapshot
from trainlaunch.diagnose.base.log_facts import Hit
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.diagnose.base.memory_advice import memory_story, more_memory
from trainlaunch.exit_codes import EXIT_SIGKILL
from trainlaunch.units import human_size

CODE = "TL610"
NAME = "oom-killed"
NEARLY = 0.95  # of the limit, by what can't be given back
_REASON = LogPattern("OOM", r"\bOOMKilled\b(?!\W+false)")
_KERNEL = LogPattern("illed", r"(?:Memory cgroup o|O)ut of memory: Killed process \d+|oom-kill:.*: Killed process \d+")
_CONSTRAINT = LogPattern("OOM", r"System OOM encountered|OOM ?[Kk]ill(?:ed)? (?:event|detected)|CONSTRAINT_MEMCG")
_SLURM = LogPattern("rror:", r"Detected \d+ oom[-_]kill event|Exceeded (?:job|step) memory limit")
_RAY = LogPattern("illed", r"killed due to (?:the node running low on memory|memory pressure \(OOM\))")


def diagnose(case: Case) -> Diagnosis | None:
    """Match the engine's OOMKilled, the kernel's, Slurm's and Ray's lines; a SIGKILL after a stop is another thing."""
    evidence = case.evidence
    hit = case.first(_REASON, _KERNEL, _CONSTRAINT, _SLURM, _RAY)
    if not evidence.oom_killed and hit is None:
        return None
    if case.exit_code in {EXIT_SIGKILL, None}:
        sentence = f"the kernel killed the job at its memory limit: {memory_story(evidence)}"
    else:
        sentence = f"the kernel killed a process inside the job at its memory limit: {memory_story(evidence)}"
        if case.exit_code == 0:
            sentence += "; the job still ended with 0, so part of its work may be missing"
    fix = more_memory(evidence)
    if evidence.memory and evidence.private_shm and evidence.shm_size >= evidence.memory:
        fix += "; in a pod the files in /dev/shm outlive a restart of the container: delete the pod"
    return Diagnosis(CODE, NAME, sentence, seen(_told(case), hit), fix)


def diagnose_live(case: Case, look: ContainerSnapshot) -> Diagnosis | None:
    """Match a memory limit that is nearly used up by processes and /dev/shm; what files hold is given back."""
    memory = look.memory
    if memory is None or memory.limit is None or memory.anon is None:
        return None
    kept = memory.anon + (memory.shmem or 0)
    if kept < NEARLY * memory.limit:
        return None
    shown = EvidenceLine("machine", 0, f"processes and /dev/shm hold {human_size(kept)} of {human_size(memory.limit)}")
    return Diagnosis(
        CODE,
        NAME,
        "memory is nearly used up: the kernel kills a process of the job when it reaches its limit",
        (shown,),
        more_memory(case.evidence),
        POSSIBLE,
    )


def _told(case: Case) -> EvidenceLine | Hit | str | None:
    if not case.evidence.oom_killed:
        return None
    here = case.evidence.where.on_this_machine
    return "the engine says OOMKilled true" if here else "the pod's status says OOMKilled"
