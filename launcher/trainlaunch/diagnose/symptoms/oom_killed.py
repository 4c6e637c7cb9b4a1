from __future__ import annotations

from trainlaunch.diagnose.base.case import POSSIBLE, Case, Diagnosis, EvidenceLine, seen
from trainlaunch.diagnose.base.container_snapshot import ContainerSnapshot
from trainlaunch.diagnose.base.log_facts import Hit
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.diagnose.base.memory_advice import fewer, memory_story, more_memory
from trainlaunch.exit_codes import EXIT_SIGKILL
from trainlaunch.units import human_size

CODE = "TL610"
NAME = "oom-killed"
NEARLY = 0.95  # of the limit, by what can't be given back
_REASON = LogPattern("OOM", r"\bOOMKilled\b(?!\W+false)")
_KERNEL = LogPattern("illed", r"(?:Memory cgroup o|O)ut of memory: Killed process \d+|oom-kill:.*: Killed process \d+")
_CONSTRAINT = LogPattern("OOM", r"System OOM encountered|OOM ?[Kk]ill(?:ed)? (?:event|detected)|CONSTRAINT_MEMCG")
_SLURM = LogPattern("rror:", r"Detected \d+ oom[-_]kill event|Exceeded (?:job|step) memory limit")
_OOMD = LogPattern("illed", r"systemd-oomd.{0,80}[Kk]illed|[Kk]illed \S+ due to memory (?:pressure|used)")
_RAY_NUMBERS = LogPattern(
    "exceed", r"was (?P<used>[\d.]+ ?[KMGT]i?B) / (?P<all>[\d.]+ ?[KMGT]i?B) \([\d.]+\), which exceeds", beside=True
)
_RAY = LogPattern("illed", r"killed due to (?:the node running low on memory|memory pressure \(OOM\))")
OUT_OF_MEMORY = (_REASON, _KERNEL, _CONSTRAINT, _SLURM, _RAY, _OOMD)


def diagnose(case: Case) -> Diagnosis | None:
    """Match the engine's OOMKilled, the kernel's, Slurm's and Ray's lines; a SIGKILL after a stop is another thing."""
    evidence = case.evidence
    hit = case.first(*OUT_OF_MEMORY)
    if not evidence.oom_killed and hit is None:
        return None
    if not evidence.oom_killed and hit is not None and (other := _by_another(case, hit)) is not None:
        return other
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


def _by_another(case: Case, hit: Hit) -> Diagnosis | None:
    """Return what it is where not the kernel ended it at the container's limit, but who watches memory beside it."""
    story = None
    if _RAY.found_in(hit.text):
        numbers = case.first(_RAY_NUMBERS)
        used = f" ({numbers.match['used']} of {numbers.match['all']} were used)" if numbers is not None else ""
        story = (
            f"Ray's own memory monitor ended a worker because the node's memory was nearly used up{used}; the kernel "
            f"did not",
            "give the node or the container more memory, or let fewer tasks and workers run at a time (num_cpus of a "
            "task); "
            "RAY_memory_usage_threshold moves the limit",
        )
    elif _OOMD.found_in(hit.text):
        story = (
            "systemd-oomd ended the job because memory was under pressure on this host, below any limit of the "
            "container",
            f"{fewer(case.evidence)}, end what else uses the host's memory, or let it alone: `systemctl stop "
            f"systemd-oomd`",
        )
    elif _SLURM.found_in(hit.text):
        story = (
            "Slurm's memory limit of the job (its cgroup) was reached, and the kernel killed a process of it",
            f"ask for more, `#SBATCH --mem=…` (or --mem-per-cpu), or {fewer(case.evidence)}; what is in /dev/shm "
            f"counts too",
        )
    elif _KERNEL.found_in(hit.text) and "cgroup" not in hit.text.lower() and "MEMCG" not in hit.text:
        story = (
            "the machine itself was out of memory, and its kernel killed a process of the job: no limit of a "
            "container was met",
            f"{fewer(case.evidence)}, or end what else uses the machine's memory; with a memory limit the job "
            f"is ended alone",
        )
    elif _CONSTRAINT.found_in(hit.text) and "System OOM" in hit.text:
        story = (
            "the node itself was out of memory, and the kernel killed a process on it",
            "set resources.memory, which is the request as well, so that the node is not given too much",
        )
    return None if story is None else Diagnosis(CODE, NAME, story[0], seen(hit), story[1])


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
