from __future__ import annotations

from trainlaunch.diagnose.base.case import Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.targets import KUBERNETES

CODE = "TL638"
NAME = "thread-limit"
_PTHREAD = LogPattern("hread", r"pthread_create(?:\(\))? (?:failed|error).*Resource temporarily unavailable")
_GOMP = LogPattern("hread creation failed", r"libgomp: Thread creation failed: Resource temporarily unavailable")
_PYTHON = LogPattern("rror: can't start new thread")
_NPROC = LogPattern("hread", r"RLIMIT_NPROC \d+ current")
_CXX = LogPattern("rror", r"std::system_error.*\bResource temporarily unavailable")
_WHAT = LogPattern("temporarily un", r"what\(\):\s+.*Resource temporarily unavailable")
_OMP = LogPattern("rror", r"OMP: Error #34")
_GO = LogPattern("hread", r"failed to create new OS thread|thread creation failed.*errno ?=? ?11")
_FORK = LogPattern("temporarily un", r"fork: (?:retry: )?Resource temporarily unavailable")
_EAGAIN = LogPattern("rror: [Errno 11]", r"BlockingIOError: \[Errno 11\]|OSError: \[Errno 11\]")
_FORKS = r"popen_fork\.py|os\.fork\(|_fork_exec|subprocess\.py|_start_new_thread"


def diagnose(case: Case) -> Diagnosis | None:
    """Match EAGAIN of threads and forks; that of torch's allocator is a full /dev/shm."""
    hit = case.first(_PTHREAD, _GOMP, _PYTHON, _NPROC, _CXX, _WHAT, _OMP, _GO, _FORK) or case.first(
        _EAGAIN, within=_FORKS
    )
    if hit is None:
        return None
    limit = f" of {case.evidence.pids_limit}" if case.evidence.pids_limit else ""
    threads = 'set env: {OMP_NUM_THREADS: "1", OPENBLAS_NUM_THREADS: "1"}, or resources.cpus, which sets them'
    return Diagnosis(
        CODE,
        NAME,
        f"the limit{limit} of processes and threads is reached; a crash below that line is its consequence",
        seen(hit),
        f"{threads}; or use fewer workers; or {_more(case)}",
    )


def _more(case: Case) -> str:
    if case.evidence.target == KUBERNETES.name:
        return "let the node's kubelet have a larger podPidsLimit"
    return "raise the container's `--pids-limit`" if case.evidence.where.starts_container else "raise `ulimit -u`"
