"""InfiniBand or RDMA could not register memory: the limit of locked memory is too low.

**What you see**: `Call to ibv_reg_mr… failed with error Cannot allocate memory`, `ibv_create_cq failed`, or UCX's
`Please check if ulimit -l is large enough`.
**Why**: registered memory is locked, and counts against RLIMIT_MEMLOCK, which containers inherit from their engine
(often 64 KiB). It is neither the container's memory limit nor /dev/shm.
**Way out**: ulimits memlock -1; in a pod, which has no ulimits, the capability IPC_LOCK or the runtime's LimitMEMLOCK.
**References**: docs.nvidia.com/deeplearning/nccl, section Troubleshooting; ibv_reg_mr(3).
"""

from __future__ import annotations

from launcher.diagnose.case import Case
from launcher.diagnose.diagnosis import Diagnosis, seen
from launcher.diagnose.texts import Text
from launcher.targets import KUBERNETES

CODE = "TL640"
NAME = "memlock"
_REG = Text("ibv_", r"ibv_(?:reg|create|alloc)_\w+.*(?:failed|error).*(?:Cannot allocate memory|errno:? 12\b)")
_UCX = Text("Error", r"\bulimit -l\b|RLIMIT_MEMLOCK")


def diagnose(case: Case) -> Diagnosis | None:
    """Match ENOMEM of verbs that register memory."""
    hit = case.first(_REG, _UCX)
    if hit is None:
        return None
    sentence = "InfiniBand could not register memory: the limit of locked memory (ulimit -l) is too low"
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
    return Diagnosis(CODE, NAME, sentence, seen(hit), fix, commands=("ulimit -l",))
