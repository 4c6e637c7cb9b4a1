"""Limits of the system: descriptors, threads, mappings, locked memory, disks."""

from __future__ import annotations

import re

from trainlaunch.diagnose.base.case import (
    CERTAIN,
    LIKELY,
    POSSIBLE,
    Case,
    EvidenceLine,
    Symptom,
    Told,
    of_one_text,
    seen,
)
from trainlaunch.diagnose.base.container_snapshot import ContainerSnapshot
from trainlaunch.diagnose.base.log_patterns import LogPattern

NEARLY = 0.95  # of the limit
ANCDATA = LogPattern("rror: received", r"received \d+ items of ancdata")
TORCH = LogPattern("oo many open files", r"Too many open files\. Communication with the workers")
TORCH_OPEN = LogPattern("nable to open shared memory object", r"shared memory object <[^<>]*>.*\(24\)")
# Without an errno, as torch 1.12 and older print it.
_WITHOUT_ERRNO = LogPattern(
    "nable to open shared memory object", r"memory object <[^<>]*> in read-write mode(?: at |$)"
)
OPEN = LogPattern("oo many open files", r"[Tt]oo many open files")
_SHARES = r"multiprocessing/(?:reductions?|resource_sharer|connection|popen_\w+)\.py"


def _fd_limit(case: Case) -> Told | None:
    """Match the texts of RLIMIT_NOFILE."""
    shares = case.first(ANCDATA, TORCH, TORCH_OPEN) or case.first(OPEN, within=_SHARES)
    hit = shares or case.first(OPEN)
    if hit is None:
        return _without_errno(case)
    more = _raise_it(case)
    if shares is not None:
        return Told(
            "a process ran out of file descriptors, one for each tensor that it shares; /dev/shm is not full",
            seen(hit),
            f"keep `.clone()`s instead of the workers' own tensors, or {more}",
            CERTAIN,
        )
    return Told(
        "a process ran out of file descriptors",
        seen(hit),
        f"close what is opened for each sample, or {more}",
        LIKELY,
    )


def _without_errno(case: Case) -> Told | None:
    hit = case.first(_WITHOUT_ERRNO)
    if hit is None:
        return None
    return Told(
        "a shared tensor could not be opened; the line doesn't tell whether for open files, /dev/shm or a removed "
        "segment",
        seen(hit),
        f"look with `ulimit -n` and `df -h /dev/shm` inside; for the first {_raise_it(case)}; torch 1.13 and newer "
        f"name the reason",
        POSSIBLE,
    )


def _fd_limit_live(case: Case, look: ContainerSnapshot) -> Told | None:
    """Match a process that is close to its limit."""
    near = [each for each in look.processes if each.open_files and each.most_files]
    near = [each for each in near if (each.open_files or 0) >= NEARLY * (each.most_files or 0)]
    if not near:
        return None
    shown = EvidenceLine(
        "machine", 0, f"process {near[0].pid} has {near[0].open_files} of {near[0].most_files} files open"
    )
    return Told(
        "a process will soon be out of file descriptors",
        (shown,),
        f"keep `.clone()`s instead of the workers' own tensors, close what is opened, or {_raise_it(case)}",
        LIKELY,
    )


def _raise_it(case: Case) -> str:
    """Return how its target raises the limit: a pod has no ulimits."""
    return case.by_target(
        "run `ulimit -n $(ulimit -Hn)` before the command, as the preflight does; more is the runtime's LimitNOFILE",
        "set ulimits: {nofile: 65536}",
        "raise nofile in /etc/security/limits.conf",
    )


_MMAP = LogPattern("rror", r"unable to mmap \d+ bytes from file <[^<>]*>: Cannot allocate memory \(12\)")
_NAMED = LogPattern("rror", r"vm\.max_map_count|max virtual memory areas")

# Match ENOMEM out of mmap of a shared storage: the kernel kills a process that has no memory, mmap says so.
_map_count = of_one_text(
    "TL637",
    "map-count",
    (_MMAP, _NAMED),
    "a process has too many memory mappings, one for each shared tensor; neither memory nor /dev/shm is full",
    "return fewer, larger tensors, or keep `.clone()`s; on the host `sysctl -w vm.max_map_count=1048576` allows more",
    LIKELY,
    ("sysctl vm.max_map_count",),
)


_REG = LogPattern("ibv_", r"ibv_(?:reg|create|alloc)_\w+.*(?:failed|error).*(?:Cannot allocate memory|errno:? 12\b)")
_UCX = LogPattern("Error", r"\bulimit -l\b|RLIMIT_MEMLOCK")


def _memlock(case: Case) -> Told | None:
    """Match ENOMEM of RDMA `verbs` that register memory."""
    hit = case.first(_REG, _UCX)
    if hit is None:
        return None
    fix = case.by_target(
        "give the container the capability IPC_LOCK by a patch, or raise LimitMEMLOCK of the node's runtime",
        "set ulimits: {memlock: -1}; on Kubernetes, which has no ulimits, the capability IPC_LOCK, or the runtime's "
        "LimitMEMLOCK",
        "raise memlock to unlimited in /etc/security/limits.conf",
    )
    return Told(
        "InfiniBand could not register memory: the limit of locked memory (ulimit -l) is too low",
        seen(hit),
        fix,
        commands=("ulimit -l",),
    )


PTHREAD = LogPattern(
    "Resource temporarily", r"pthread_create(?:\(\))? (?:failed|error).*Resource temporarily unavailable"
)
_THREAD_LIMIT_GOMP = LogPattern("Thread creation", r"libgomp: Thread creation failed: Resource temporarily unavailable")
_PYTHON = LogPattern("rror: can't start new thread")
_NPROC = LogPattern("RLIMIT_NPROC", r"RLIMIT_NPROC \d+ current")
_THREAD_LIMIT_CXX = LogPattern("rror", r"std::system_error.*\bResource temporarily unavailable")
_WHAT = LogPattern("Resource temporarily", r"what\(\):\s+.*Resource temporarily unavailable")
_OMP = LogPattern("rror", r"OMP: Error #34")
_GO = LogPattern("OS thread", r"failed to create new OS thread")
_FORK = LogPattern("Resource temporarily", r"fork: (?:retry: )?Resource temporarily unavailable")
_EAGAIN = LogPattern("rror: [Errno 11]", r"BlockingIOError: \[Errno 11\]|OSError: \[Errno 11\]")
_FORKS = r"popen_fork\.py|os\.fork\(|_fork_exec|subprocess\.py|_start_new_thread"


def _thread_limit(case: Case) -> Told | None:
    """Match EAGAIN of threads and forks; that of torch's allocator is a full /dev/shm."""
    hit = case.first(
        PTHREAD, _THREAD_LIMIT_GOMP, _PYTHON, _NPROC, _THREAD_LIMIT_CXX, _WHAT, _OMP, _GO, _FORK
    ) or case.first(_EAGAIN, within=_FORKS)
    if hit is None:
        return None
    limit = f" of {case.evidence.pids_limit}" if case.evidence.pids_limit else ""
    more = case.by_target(
        "let the node's kubelet have a larger podPidsLimit", "raise the container's `--pids-limit`", "raise `ulimit -u`"
    )
    threads = 'set env: {OMP_NUM_THREADS: "1", OPENBLAS_NUM_THREADS: "1"}, or resources.cpus, which sets them'
    return Told(
        f"the limit{limit} of processes and threads is reached; a crash below that line is its consequence",
        seen(hit),
        f"{threads}; or use fewer workers; or {more}",
    )


_OLD_SECCOMP_PTHREAD = LogPattern(
    "Operation not permitted", r"pthread_create(?:\(\))? (?:failed|error).*Operation not permitted"
)
_OLD_SECCOMP_GOMP = LogPattern("Thread creation", r"Thread creation failed: Operation not permitted")
_OLD_SECCOMP_CXX = LogPattern("rror", r"std::system_error.*Operation not permitted")

# Match EPERM of a thread's start: a limit answers EAGAIN.
_old_seccomp = of_one_text(
    "TL639",
    "old-seccomp",
    (_OLD_SECCOMP_PTHREAD, _OLD_SECCOMP_GOMP, _OLD_SECCOMP_CXX),
    "the engine's seccomp profile is older than the image's C library and forbids it to start threads",
    "update Docker to 20.10.10 or newer, with runc and libseccomp 2.5, on the host; no limit has to be raised",
    commands=("docker version --format '{{.Server.Version}}'",),
)


NONE_USABLE = LogPattern("rror", r"No usable temporary directory(?: name)? found")
TOO_LONG = LogPattern("rror: AF_UNIX path too long")
MANAGER = LogPattern("shm", r"could not generate a random directory for manager socket")


def _tmpdir_unusable(case: Case) -> Told | None:
    """Match the three texts."""
    hit = case.first(NONE_USABLE, TOO_LONG, MANAGER)
    if hit is None:
        return None
    hung = "; the run is hung and will not end by itself" if case.exit_code is None else ""
    mount = "add `{type: tmpfs, target: /tmp}` to mounts, or " if case.evidence.where.starts_container else ""
    return Told(
        f"the temporary directory can't hold the socket that workers pass tensors through{hung}",
        seen(hit),
        f"{mount}set env: {{TMPDIR: /tmp}}",
    )


_ENOSPC = LogPattern(
    "o space left on device", r"(?:\[[Ee]rrno 28\] |: |^|error: |error message = ')[Nn]o space left on device"
)
_QUOTA_ERROR = LogPattern("rror: [Errno 122]")
_TORCH = LogPattern(
    "rror", r"PytorchStreamWriter failed writing file|inline_container\.cc.*(?:unexpected pos|file write failed)"
)
_SHM = r"SemLock|synchronize\.py|shared_memory\.py|multiprocessing/reductions|_share_(?:fd|filename)|torch_\d|/dev/shm"
_PATH = re.compile(r"""device:? ['"]?(/[^'"\s]+)|(?<![^\s:'"])[^\s:'"/]*(/[^\s:'"]+): (?:write|[Nn]o space)""")


def _disk_full(case: Case) -> Told | None:
    """Match ENOSPC and EDQUOT that neither their line nor their traceback ties to /dev/shm."""
    found = [
        each for each in case.hits(_ENOSPC, _QUOTA_ERROR, _TORCH) if not _of_shm(each.text) and not each.within(_SHM)
    ]
    if not found:
        return None
    hit = next((each for each in found if _PATH.search(each.text)), found[0])
    path = _PATH.search(hit.text)
    where = next((each for each in path.groups() if each), "") if path else ""
    what = "the disk quota is used up" if "quota" in hit.text else "the disk is full"
    sentence = f"{what} where {where} is; /dev/shm is not" if where else f"{what} that the job writes to"
    return Told(
        sentence,
        seen(hit),
        f"look with `df -h {where or '.'}` and `df -i {where or '.'}`, then free room there or write to a larger mount",
        CERTAIN if where else LIKELY,
    )


def _of_shm(line: str) -> bool:
    return re.search(r"torch_\d|/dev/shm|\(shm\)|NCCL|nccl-", line) is not None


SYMPTOMS = (
    Symptom("TL607", "fd-limit", _fd_limit, _fd_limit_live),
    _map_count,
    Symptom("TL640", "memlock", _memlock),
    Symptom("TL638", "thread-limit", _thread_limit),
    _old_seccomp,
    Symptom("TL608", "tmpdir-unusable", _tmpdir_unusable),
    Symptom("TL641", "disk-full", _disk_full),
)
