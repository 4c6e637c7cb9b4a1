from __future__ import annotations

from trainlaunch.diagnose.base.case import CERTAIN, LIKELY, POSSIBLE, Case, Diagnosis, EvidenceLine, seen
from trainlaunch.diagnose.base.container_snapshot import ContainerSnapshot
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.targets import KUBERNETES

CODE = "TL607"
NAME = "fd-limit"
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


def diagnose(case: Case) -> Diagnosis | None:
    """Match the texts of RLIMIT_NOFILE."""
    shares = case.first(ANCDATA, TORCH, TORCH_OPEN) or case.first(OPEN, within=_SHARES)
    hit = shares or case.first(OPEN)
    if hit is None:
        return _without_errno(case)
    more = _raise_it(case)
    if shares is not None:
        return Diagnosis(
            CODE,
            NAME,
            "a process ran out of file descriptors, one for each tensor that it shares; /dev/shm is not full",
            seen(hit),
            f"keep `.clone()`s instead of the workers' own tensors, or {more}",
            CERTAIN,
        )
    return Diagnosis(
        CODE,
        NAME,
        "a process ran out of file descriptors",
        seen(hit),
        f"close what is opened for each sample, or {more}",
        LIKELY,
    )


def _without_errno(case: Case) -> Diagnosis | None:
    hit = case.first(_WITHOUT_ERRNO)
    if hit is None:
        return None
    return Diagnosis(
        CODE,
        NAME,
        "a shared tensor could not be opened, and the line does not say why: the limit of open files, a /dev/shm that "
        "is "
        "full or shared, or a segment that is gone",
        seen(hit),
        f"look with `ulimit -n` and `df -h /dev/shm` inside; for the first {_raise_it(case)}; torch 1.13 and newer "
        f"name the reason",
        POSSIBLE,
    )


def diagnose_live(case: Case, look: ContainerSnapshot) -> Diagnosis | None:
    """Match a process that is close to its limit."""
    near = [each for each in look.processes if each.open_files and each.most_files]
    near = [each for each in near if (each.open_files or 0) >= NEARLY * (each.most_files or 0)]
    if not near:
        return None
    shown = EvidenceLine(
        "machine", 0, f"process {near[0].pid} has {near[0].open_files} of {near[0].most_files} files open"
    )
    return Diagnosis(
        CODE,
        NAME,
        "a process will soon be out of file descriptors",
        (shown,),
        f"keep `.clone()`s instead of the workers' own tensors, close what is opened, or {_raise_it(case)}",
        LIKELY,
    )


def _raise_it(case: Case) -> str:
    """Return how its target raises the limit: a pod has no ulimits."""
    if case.evidence.target == KUBERNETES.name:
        return (
            "run `ulimit -n $(ulimit -Hn)` before the command, as the preflight does; more is the runtime's LimitNOFILE"
        )
    if case.evidence.where.starts_container:
        return "set ulimits: {nofile: 65536}"
    return "raise nofile in /etc/security/limits.conf"
