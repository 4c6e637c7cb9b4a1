from __future__ import annotations

from trainlaunch.diagnose.base.case import Case, Diagnosis, EvidenceLine, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL623"
NAME = "node-lost"
_STORIES = {
    "NodeLost": "the node stopped answering",
    "DisruptionTarget": "the node of a pod was drained or lost, or the pod was preempted",
    "DeletionByTaintManager": "the node got a taint that the pod does not tolerate, as one that stops answering does",
    "TaintManagerEviction": "the node got a taint that the pod does not tolerate, as one that stops answering does",
    "DeletionByPodGC": "the node is gone",
    "EvictionByEvictionAPI": "the node was drained, as for an upgrade",
    "TerminationByKubelet": "the node shut down, or needed the room",
    "NodeShutdown": "the node shut down",
    "Terminated": "the node shut down",
    "Shutdown": "the node shut down",
}
_SLURM = LogPattern("rror", r"DUE TO NODE FAILURE|CANCELLED AT \S+ DUE TO NODE FAIL")
_EVENT = LogPattern("NodeNot", r"\bNodeNotReady\b.*\bnot ready\b|Node .* status is now: NodeNotReady|\bNodeLost\b")
_TAINT = LogPattern("TaintManager", r"\b(?:DeletionByTaintManager|TaintManagerEviction)\b")


def diagnose(case: Case) -> Diagnosis | None:
    """Match the reasons that are about the node, and Slurm's."""
    event = case.event(*_STORIES)
    hit = case.first(_SLURM, _EVENT, _TAINT)
    if event is None and hit is None:
        return None
    story = _STORIES[event.reason] if event is not None else "the node failed"
    shown = EvidenceLine("events", 0, f"{event.reason}: {event.words}".rstrip(": ")) if event is not None else hit
    return Diagnosis(
        CODE,
        NAME,
        f"the run was taken away: {story}",
        seen(shown),
        "start it again from its last checkpoint; restart.max_attempts does it by itself, and of several nodes "
        "kubernetes.kind jobset starts all again",
    )
