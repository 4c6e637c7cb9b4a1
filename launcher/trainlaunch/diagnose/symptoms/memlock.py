from __future__ import annotations

from trainlaunch.diagnose.base.case import Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.targets import KUBERNETES

CODE = "TL640"
NAME = "memlock"
_REG = LogPattern("ibv_", r"ibv_(?:reg|create|alloc)_\w+.*(?:failed|error).*(?:Cannot allocate memory|errno:? 12\b)")
_UCX = LogPattern("Error", r"\bulimit -l\b|RLIMIT_MEMLOCK")


def diagnose(case: Case) -> Diagnosis | None:
    """Match ENOMEM of verbs that register memory."""
    hit = case.first(_REG, _UCX)
    if hit is None:
        return None
    if case.evidence.target == KUBERNETES.name:
        fix = "give the container the capability IPC_LOCK by a patch, or raise LimitMEMLOCK of the node's runtime"
    elif case.evidence.where.starts_container:
        fix = (
            "set ulimits: {memlock: -1}; on Kubernetes, which has no ulimits, the capability "
            "IPC_LOCK, or the runtime's "
            "LimitMEMLOCK"
        )
    else:
        fix = "raise memlock to unlimited in /etc/security/limits.conf"
    return Diagnosis(
        CODE,
        NAME,
        "InfiniBand could not register memory: the limit of locked memory (ulimit -l) is too low",
        seen(hit),
        fix,
        commands=("ulimit -l",),
    )
