"""Memory: of the container, the host and the GPU, by whoever says so."""

from __future__ import annotations

from trainlaunch.diagnose.base.case import (
    CERTAIN,
    LIKELY,
    POSSIBLE,
    Case,
    EvidenceLine,
    Story,
    Symptom,
    Told,
    seen,
    told_by,
)
from trainlaunch.diagnose.base.container_snapshot import ContainerSnapshot
from trainlaunch.diagnose.base.log_facts import Hit
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.diagnose.base.memory_advice import fewer, memory_story, more_memory
from trainlaunch.exit_codes import EXIT_SIGKILL
from trainlaunch.least_shm import RAY_ROOM
from trainlaunch.units import GIB, MIB, format_size, human_size, round_up

NEARLY = 0.95  # of the limit, by what can't be given back
_REASON = LogPattern("OOM", r"\bOOMKilled\b(?!\W+false)")
_KERNEL = LogPattern("illed", r"(?:Memory cgroup o|O)ut of memory: Killed process \d+|oom-kill:.*: Killed process \d+")
_CONSTRAINT = LogPattern("OOM", r"System OOM encountered|OOM ?[Kk]ill(?:ed)? (?:event|detected)|CONSTRAINT_MEMCG")
_SLURM = LogPattern(
    "rror:", r"Detected \d+ oom[-_]kill event|Exceeded (?:job|step) memory limit|\btasks? [\d,-]{1,40}: Out Of Memory"
)
_OOMD = LogPattern("illed", r"systemd-oomd.{0,80}[Kk]illed|[Kk]illed \S+ due to memory (?:pressure|used)")
_RAY_NUMBERS = LogPattern(
    "exceed", r"was (?P<used>[\d.]+ ?[KMGT]i?B) / (?P<all>[\d.]+ ?[KMGT]i?B) \([\d.]+\), which exceeds", beside=True
)
_RAY = LogPattern("illed", r"killed due to (?:the node running low on memory|memory pressure \(OOM\))")
OUT_OF_MEMORY = (_REASON, _KERNEL, _CONSTRAINT, _SLURM, _RAY, _OOMD)


def _oom_killed(case: Case) -> Told | None:
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
    return Told(sentence, seen(_told(case), hit), fix)


def _by_another(case: Case, hit: Hit) -> Told | None:
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
    return None if story is None else Told(story[0], seen(hit), story[1])


def _oom_killed_live(case: Case, look: ContainerSnapshot) -> Told | None:
    """Match a memory limit that is nearly used up by processes and /dev/shm; what files hold is given back."""
    memory = look.memory
    if memory is None or memory.limit is None or memory.anon is None:
        return None
    kept = memory.anon + (memory.shmem or 0)
    if kept < NEARLY * memory.limit:
        return None
    shown = EvidenceLine("machine", 0, f"processes and /dev/shm hold {human_size(kept)} of {human_size(memory.limit)}")
    return Told(
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


KILLED = LogPattern(
    "killed by signal: Killed", r"DataLoader worker \(pid\(?s?\)? [\d, ]+\) is killed by signal: Killed"
)


def _oom_killed_worker(case: Case) -> Told | None:
    """Match torch's text for SIGKILL."""
    hit = case.first(KILLED)
    if hit is None:
        return None
    evidence = case.evidence
    sure = CERTAIN if evidence.oom_killed else LIKELY
    return Told(
        f"a DataLoader worker was killed, almost always for memory: {memory_story(evidence)}",
        seen(hit),
        more_memory(evidence),
        sure,
    )


_CUDA = LogPattern(
    "CUDA", r"CUDA out of memory|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY|Cuda failure.*out of memory"
)
_HIP = LogPattern(
    "rror", r"HIP out of memory|CUBLAS_STATUS_ALLOC_FAILED|OutOfMemoryError: (?:CUDA|HIP)|cudaErrorMemoryAllocation"
)
_NCCL = LogPattern("Cuda failure", r"Cuda failure (?:2 )?'out of memory'")

_NVMAP = LogPattern("rror", r"NvMapMem\w{1,40}: .*error 12")
_PINNED = LogPattern("CUDA", r"CUDA error: out of memory")
_UNIFIED = LogPattern("NV_ERR_NO_MEMORY", r"NVRM: .*NV_ERR_NO_MEMORY", beside=True)
_LOWER = "lower batch_size, or accumulate gradients; look with nvidia-smi whether another process uses the GPU"

_OF_GPU = (
    Story(
        (_NCCL,),
        "a GPU has no memory left for NCCL's buffers: what the job keeps there leaves none; /dev/shm is not it",
        "leave room on the GPU (a smaller batch_size, a smaller share for a cache of keys and values), or set env: "
        "{NCCL_BUFFSIZE: '2097152'} and NCCL_NVLS_ENABLE: '0'",
        commands=("nvidia-smi",),
    ),
    Story(
        (_NVMAP,),
        "the memory that GPU and host share has no room left: the page cache and the host's processes count",
        "free the host's share (`sync; echo 3 > /proc/sys/vm/drop_caches` as root), or lower batch_size",
        LIKELY,
    ),
    Story(
        (_CUDA, _HIP),
        "a GPU has no memory left; the container's memory and /dev/shm are not it",
        f"{_LOWER}; where much is reserved and unused set env: {{PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True'}}",
        commands=("nvidia-smi",),
    ),
)


def _cuda_oom(case: Case) -> Told | None:
    """Match the allocators' texts; where host and GPU have one memory, what the host holds is missing there."""
    found = told_by(case, _OF_GPU)
    if found is None or case.first(_PINNED, within=r"pin_memory\.py|cudaHostAlloc") is not None:
        return None  # page-locked memory of the host
    unified = case.first(_UNIFIED)
    if unified is None:
        return found
    return found._replace(
        sentence="the memory that GPU and host share has no room left: the page cache and the host's processes count",
        fix="free the host's share (`sync; echo 3 > /proc/sys/vm/drop_caches` as root), give the container "
        f"a smaller memory and /dev/shm, or {_LOWER}",
        evidence=(*found.evidence, *seen(unified)),
    )


_TMP = LogPattern(
    "instead of /dev/shm",
    r"object store is using /tmp instead of /dev/shm because /dev/shm has only (\d{1,18}) bytes",
    beside=True,
)
_ANY_TMP = LogPattern("instead of /dev/shm", r"object store is using \S+ instead of /dev/shm", beside=True)
_FULL = LogPattern("rror", r"ObjectStoreFullError|plasma.*(?:No space left|ENOSPC)")
_EXCEEDS = LogPattern("shm", r"(?i)object store.*(?:exceeds|larger than).*/dev/shm")
_BOTH = LogPattern(
    "shm", r"object store size \((?P<store>[\d.]{1,20}) GB\) exceeds /dev/shm size \((?P<room>[\d.]{1,20}) GB\)"
)
_REQUEST = LogPattern(
    "xceed", r"request is for (?P<store>\d{1,18}) bytes, and the amount available is (?P<room>\d{1,18})"
)


def _ray_shm(case: Case) -> Told | None:
    """Match Ray's warnings with their number, and its error."""
    if (told := case.first(_BOTH, _REQUEST)) is not None:
        return _store_refused(told)
    hit = case.first(_TMP) or case.first(_ANY_TMP, _EXCEEDS, _FULL)
    if hit is None:
        return None
    free = int(hit.match[1]) if hit.match.re.groups else 0
    if not free:
        return Told(
            "Ray's object store does not fit into /dev/shm",
            seen(hit),
            "lower object_store_memory, or name it in shm_extra with its size, so that /dev/shm holds it",
            LIKELY,
        )
    fits = _fitting(free)
    return Told(
        f"Ray's object store is larger than the {human_size(free)} that are free in /dev/shm, so it lies on disk",
        seen(hit),
        f"set object_store_memory to at most {fits}, or make /dev/shm a tenth larger than it: shm_extra: "
        "[{name: ray, size: …}]; files of an earlier Ray in /dev/shm take room too",
    )


def _fitting(free: int) -> str:
    """Return the size of an object store that fits into what is free, with a tenth for other files."""
    return format_size(round_up(max(free * RAY_ROOM[1] // RAY_ROOM[0] - MIB, MIB), MIB))


def _store_refused(told: Hit) -> Told:
    """Return what Ray says with both numbers, in gigabytes or bytes."""
    unit = 1 if told.text.endswith("bytes") or "bytes," in told.text else 10**9
    store, room = (int(float(told.match[each]) * unit) for each in ("store", "room"))
    wanted = format_size(round_up(store * 11 // 10, GIB))
    return Told(
        f"Ray did not start: its object store of {human_size(store)} does not fit into the {human_size(room)} that are "
        f"free in /dev/shm",
        seen(told),
        f"set object_store_memory (`ray start --object-store-memory`) to at most {_fitting(room)}, or make /dev/shm a "
        f"tenth larger than it: shm_extra: [{{name: ray, size: {wanted}}}]",
    )


SYMPTOMS = (
    Symptom("TL610", "oom-killed", _oom_killed, _oom_killed_live),
    Symptom("TL609", "oom-killed-worker", _oom_killed_worker),
    Symptom("TL661", "cuda-oom", _cuda_oom),
    Symptom("TL636", "ray-shm", _ray_shm),
)
