"""What is known about the end of a run on a cluster, as evidence for a diagnosis."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainlaunch.diagnose import new_scanner
from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.diagnose.base.log_facts import LogFacts
from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.base.backend import Say
from trainlaunch.run.base.run_evidence import TAIL_BYTES
from trainlaunch.run.base.watch import UNHEALTHY
from trainlaunch.run.kubernetes.api_errors import ApiRefused
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.follow import End
from trainlaunch.run.kubernetes.logs import PodLog
from trainlaunch.run.kubernetes.output import Output, with_last_word
from trainlaunch.run.kubernetes.pending import GRACE
from trainlaunch.run.kubernetes.pods import Pod
from trainlaunch.run.kubernetes.runs import pod_now
from trainlaunch.targets import KUBERNETES

# A Job's own words that tell more than its pods': the others only say that a pod failed.
_OF_THE_WORKLOAD = "DeadlineExceeded"
_OVERDUE = "longer than specified deadline"
_BY_SIGNAL = 128
_FAILED = "liveness probe failed: "


def evidence_of_ended(cluster: Cluster, end: End, say: Say) -> Evidence:
    """Return the evidence of an end whose logs nobody read to the end: the deciding pod's is read now."""
    evidence = with_liveness(cluster, replace(evidence_of_end(end, None), namespace=cluster.namespace), end.pod)
    if end.pod is None or not end.pod.ran:
        return evidence
    tail, facts = _read(cluster, end.pod, say)
    log = with_last_word(end.pod, tail)
    return replace(evidence, log=log, scanned=facts if log == tail else None)


def _read(cluster: Cluster, pod: Pod, say: Say) -> tuple[str, LogFacts]:
    """Return the last part of a pod's log, and what all of it says."""
    tail, scanner = bytearray(), new_scanner()

    def write(data: bytes) -> None:
        tail.extend(data)
        del tail[:-TAIL_BYTES]
        scanner.feed(data)

    PodLog(cluster, pod, write, lambda: pod_now(cluster, pod), say).read(follow=False, stop=threading.Event())
    return tail.decode(errors="replace"), scanner.facts()


def evidence_of_end(end: End, output: Output | None) -> Evidence:
    """Return what the cluster tells about the pod that decides an end, or about a run that never had one."""
    pod, result = end.pod, end.result
    reason, words = (pod.reason, pod.words) if pod is not None else ("", "")
    if result is not None and (result.reason == _OF_THE_WORKLOAD or _OVERDUE in result.words):
        reason, words = _OF_THE_WORKLOAD, result.words
    if end.how == "stuck" and end.wait is not None:
        reason, words = end.wait.reason, end.wait.sentence
        if pod is not None and pod.reason in GRACE:  # of others the status only says that they wait
            reason, words = pod.reason, pod.words
    if pod is None:
        return Evidence(
            0 if end.silent else end.exit_code,
            target=KUBERNETES.name,
            reason=reason,
            words=words,
            stopped_by=end.stopped_by,
        )
    stopped_by = end.stopped_by or ("a deletion of its pod" if _deleted(pod, reason) else "")
    return Evidence(
        exit_code=None if end.how == "stuck" else 0 if end.silent else end.exit_code,
        log=output.tail(pod) if output is not None else pod.termination_message,
        oom_killed=pod.oom_killed,
        shm_size=pod.shm_size,
        memory=pod.memory,
        scanned=_whole_log(pod, output),
        shm_peak=output.peak(pod) if output is not None else None,
        stopped_by=stopped_by,
        killed_by=end.killed_by,
        target=KUBERNETES.name,
        reason=reason,
        words=words,
        planned=pod.planned,
        container=pod.name,
    )


def _whole_log(pod: Pod, output: Output | None) -> LogFacts | None:
    """Return what all of a pod's log says; None where its last word is not in it, which then is looked at alone."""
    facts = output.facts(pod) if output is not None else None
    last = pod.termination_message.strip()
    complete = facts is not None and output is not None and (not last or last in output.logs[pod.uid].text)
    return facts if complete else None


def _deleted(pod: Pod, reason: str) -> bool:
    """Whether somebody deleted a pod while it ran: a signal ended it, and the cluster names no cause of its own."""
    return pod.deleting and not reason and not pod.oom_killed and (pod.exit_code or 0) > 128


def with_liveness(cluster: Cluster, evidence: Evidence, pod: Pod | None) -> Evidence:
    """Return the evidence of a pod's end with what its liveness probe had against it, where that ended it."""
    if pod is None or not pod.has_liveness or pod.deleting or (evidence.exit_code or 0) <= _BY_SIGNAL:
        return evidence
    words = [" ".join(str(each.get("message", "")).split()) for each in _events(cluster, pod)]
    ended = any("failed liveness probe" in each for each in words)
    said = [each[len(_FAILED) :] for each in words if each.lower().startswith(_FAILED)]
    return replace(evidence, unhealthy=said[-1].removeprefix(UNHEALTHY)) if ended and said else evidence


def _events(cluster: Cluster, pod: Pod) -> list[Mapping[str, Any]]:
    """Return the pod's events; none where they can't be read."""
    path = f"/api/v1/namespaces/{cluster.namespace}/events"
    with contextlib.suppress(ApiRefused, TargetUnavailable):
        found = cluster.get(path, (("fieldSelector", f"involvedObject.uid={pod.uid}"),), what="list events")
        return found.get("items") or []
    return []
