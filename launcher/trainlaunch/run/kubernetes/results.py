"""How a run on a cluster stands or ended: by its workload's conditions, and by its pods, which may know better."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from trainlaunch.exit_codes import EXIT_TRY_ELSEWHERE
from trainlaunch.kinds import POD
from trainlaunch.run.base.clock import seconds
from trainlaunch.run.kubernetes.objects import Object
from trainlaunch.run.kubernetes.pods import Pod, first_to_fail, interruption, last_of_nodes, pod_from

SUCCESS = frozenset({"Complete", "Completed", "Succeeded"})
DEADLINE_EXCEEDED = "DeadlineExceeded"
OVERDUE = "longer than specified deadline"
NO_CODE = "no process of it left an exit code"
DELETED = "Deleted"  # a reason of ours: its last pod was told to end, and ended with 0


@dataclass(frozen=True, slots=True)
class Result:
    """How a workload stands: `state` is pending, running, complete, failed, or unknown, of one that ended somehow."""

    state: str
    reason: str = ""
    words: str = ""
    finished: float = 0.0

    @property
    def ended(self) -> bool:
        """Whether it will start no more pods."""
        return self.state in {"complete", "failed", "unknown"}


def result_of(thing: Object) -> Result:
    """Return how a workload object stands, whatever its kind: by a pod's phase, else by its conditions."""
    status = thing.get("status") or {}
    if thing.get("kind") == POD.name:
        return _of_pod(pod_from(thing))
    for each in status.get("conditions") or ():
        if each.get("status") == "True" and each.get("type") in {*SUCCESS, "Failed"}:
            return Result(
                "complete" if each["type"] in SUCCESS else "failed",
                str(each.get("reason") or ""),
                " ".join(str(each.get("message") or "").split()),
                seconds(each["lastTransitionTime"]) if each.get("lastTransitionTime") else 0.0,
            )
    return Result("running" if status.get("ready") else "pending")


def judged(result: Result, pods: Iterable[Pod]) -> Result:
    """Return how a workload stands by its pods too: one that was interrupted counts as success to its controller.

    Pods that a controller takes away once the workload is complete are none.
    """
    if result.state != "complete":
        return result
    pod = next((each for each in last_of_nodes(pods) if each.interrupted and _before(each, result)), None)
    if pod is None:
        return result
    return replace(result, state="failed", reason=pod.reason or DELETED, words=interruption(pod))


def _before(pod: Pod, result: Result) -> bool:
    """Whether a pod was taken away before its workload was complete; in the same second the first node decides."""
    asked = pod.removal_asked
    return pod.disrupted or asked < result.finished or (asked == result.finished and not pod.node_index)


def is_overdue(result: Result) -> bool:
    """Whether a workload failed because its time was over."""
    return result.reason == DEADLINE_EXCEEDED or OVERDUE in result.words


def state_now(result: Result, pods: Iterable[Pod]) -> str:
    """Return a workload's state by its pods: a Job calls a pod active that still waits."""
    if result.ended:
        return result.state
    return "running" if any(pod.state == "running" for pod in pods) else "pending"


def _of_pod(pod: Pod) -> Result:
    if pod.phase in {"Succeeded", "Failed"}:
        state = "complete" if pod.phase == "Succeeded" else "failed"
        return judged(Result(state, pod.reason, pod.words, pod.finished), [pod])
    return Result("running" if pod.state == "running" else "pending")


def no_code(pods: Sequence[Pod]) -> str:
    """Return why a run that failed has no exit code of a process that did, as a clause about its pods."""
    if not pods:
        return "its pods are gone, and their exit codes with them"
    codes = [each.exit_code for each in pods if each.exit_code is not None]
    return "no process of it failed by itself: all ended with exit code 0" if codes and not any(codes) else NO_CODE


def exit_code_of(result: Result, pods: Iterable[Pod]) -> int | None:
    """Return the code of the first node to fail, 0 of a run that completed; None where nobody knows one.

    75 where that node was taken away and saved: another attempt may finish.
    """
    if result.state == "complete":
        return 0
    failed = first_to_fail(pods)
    if failed is None and result.reason == DELETED:
        return EXIT_TRY_ELSEWHERE
    if failed is not None and failed.interrupted and not is_overdue(result):
        return EXIT_TRY_ELSEWHERE
    return (failed.exit_code or None) if failed is not None else None
