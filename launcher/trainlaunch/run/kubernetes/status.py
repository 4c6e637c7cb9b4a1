"""How a run on a cluster stands, and what is known of its end: in JSON, in the lines of `status`, as evidence."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from trainlaunch.diagnose import causes_json, explain_end, new_scanner
from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.diagnose.base.log_facts import LogFacts
from trainlaunch.run.base.backend import Say, ShmReading
from trainlaunch.run.base.run_evidence import NEVER_SPOKE, TAIL_BYTES
from trainlaunch.run.base.run_query import Run
from trainlaunch.run.base.shm_reading import highest, measured_line, peak_of, read_from_health
from trainlaunch.run.base.store import (
    FAILED,
    PENDING,
    RUNNING,
    SUCCEEDED,
    UNKNOWN,
    ContainerStatus,
    RunReport,
    RunStatus,
    ShmStatus,
    WorkerStatus,
)
from trainlaunch.run.base.wait_reading import DataWait, waited_words
from trainlaunch.run.kubernetes.api_errors import ExecRefused
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.follow import End, end_of_run
from trainlaunch.run.kubernetes.gone_pods import result_with_events
from trainlaunch.run.kubernetes.liveness import with_liveness
from trainlaunch.run.kubernetes.logs import PodLog, is_silent
from trainlaunch.run.kubernetes.output import Output, read_health, wait_page, with_last_word
from trainlaunch.run.kubernetes.pending import GRACE, Reasons
from trainlaunch.run.kubernetes.pods import Pod, attempts_of, end_of
from trainlaunch.run.kubernetes.results import DEADLINE_EXCEEDED, Result, exit_code_of, is_overdue, state_now
from trainlaunch.run.kubernetes.runs import ClusterRun, pod_now, pods_of_run
from trainlaunch.targets import KUBERNETES
from trainlaunch.units import age, human_size, needed_size


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
    if result is not None and is_overdue(result):  # it tells more than its pods: other words only say that one failed
        reason, words = DEADLINE_EXCEEDED, result.words
    if result is not None and not reason and "condition DisruptionTarget" in result.words:
        reason, words = "DisruptionTarget", result.words  # the pod itself is gone; its Job names it
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
    by_signal = pod.interrupted or (pod.exit_code or 0) > 128
    return pod.deleting and not reason and not pod.oom_killed and by_signal


_STATES = {"complete": SUCCEEDED, "failed": FAILED, "running": RUNNING, "pending": PENDING, "unknown": UNKNOWN}


class _PodShm(NamedTuple):
    """A pod, what its /dev/shm holds, and why that could not be read."""

    pod: Pod
    reading: ShmReading | None
    unread: str
    waits: DataWait | None = None

    @property
    def seconds(self) -> float:
        """Return for how long its container runs, by its node's clock where that was read."""
        return ((self.waits and self.waits.at) or time.time()) - self.pod.started


def status_of(
    cluster: Cluster, owned: Run, result: Result, pods: Sequence[Pod], readings: Mapping[str, _PodShm] | None = None
) -> RunStatus:
    """Return a run's values, where it stands as `result` says; `readings` has what was read of its pods, by uid."""
    run, attempts = owned.held, attempts_of(pods)
    readings = readings or {}
    newest = sorted(pods, key=lambda each: (-attempts[each.uid], each.node_index or 0))
    last = max(attempts.values(), default=None)
    return RunStatus(
        job=run.job,
        run=owned.id,
        name=run.main.name,
        target=KUBERNETES.name,
        context=cluster.access.context or None,
        namespace=cluster.namespace,
        kind=run.main.kind,
        owner=owned.owner or None,
        state=_STATES[state_now(result, pods)],
        reason=result.reason or None,
        message=result.words or None,
        exit_code=exit_code_of(result, pods) if result.ended else None,
        attempt=last,
        max_attempts=None,
        created=min((each.created for each in pods if attempts[each.uid] == last), default=run.created),
        started=min((each.started for each in pods if each.started and attempts[each.uid] == last), default=None),
        finished=result.finished or None,
        containers=tuple(_container(each, attempts[each.uid], readings.get(each.uid)) for each in newest),
    )


def _container(pod: Pod, attempt: int, read: _PodShm | None) -> ContainerStatus:
    reading, unread = (None, "") if read is None else (read.reading, read.unread)
    return ContainerStatus(
        name=pod.name,
        id=pod.uid,
        node=pod.node_index,
        attempt=attempt,
        machine=pod.node or None,
        state=_state_of(pod),
        reason=pod.reason or None,
        message=pod.words or None,
        exit_code=pod.exit_code,
        oom_killed=pod.oom_killed if pod.ended else None,
        restarts=pod.restarts,
        health="healthy" if pod.ready and pod.health_command else None,  # another may also be about to start
        health_output=None,
        created=pod.created,
        started=pod.started or None,
        finished=pod.finished or None,
        shm=ShmStatus(
            used=reading.used if reading else None,
            peak=reading.peak if reading else None,
            size=reading.size if reading else pod.shm_size or None,
            need=None if pod.planned.unsized else pod.planned.need,
            unread=unread or None,
        ),
        workers=WorkerStatus(reading.workers if reading else None, pod.planned.processes),
        data_wait=read.waits.document(read.seconds) if read is not None and read.waits is not None else None,
    )


def _state_of(pod: Pod) -> str:
    if not pod.ended:
        return RUNNING if pod.state == "running" else PENDING
    return FAILED if pod.failed else SUCCEEDED


def report(cluster: Cluster, owned: Run, say: Say) -> RunReport:
    """Look into a run's pods, and at why one waits or how it ended. Raises TargetUnavailable."""
    run, pods = owned.held, pods_of_run(cluster, owned.held)
    result = result_with_events(cluster, run, run.result, pods)
    reasons = Reasons(cluster, run.main, job=None, patience=0)
    waits = () if result.ended else tuple(each.sentence for each in reasons.waits(pods, run.thing))
    readings = [_read_pod(cluster, pod) for pod in pods]
    evidence = evidence_of_ended(cluster, end_of_run(result, pods), say) if result.ended else None
    causes = () if evidence is None else explain_end(evidence)
    known = status_of(cluster, owned, result, pods, {each.pod.uid: each for each in readings})
    silent = known.exit_code == 0 and is_silent(cluster, pods)
    suggestion = _suggestion(readings)
    status = known._replace(
        waits=waits, never_ran=silent, causes=tuple(causes_json(causes)), suggestion=suggestion or None
    )
    told = [f"waits      {each}" for each in waits] + [f"preflight  {NEVER_SPOKE}"] * silent
    lines = (*_lines(cluster, run, result, pods, known.exit_code), *told, *_pod_lines(readings))
    bad = bool(known.exit_code) or silent or result.state == "failed"
    return RunReport(status, lines, (), causes, evidence, bad)


def _read_pod(cluster: Cluster, pod: Pod) -> _PodShm:
    try:
        said = read_health(cluster, pod)
    except ExecRefused as refused:
        return _PodShm(pod, None, str(refused))
    reading = read_from_health(said)
    page = wait_page(cluster, pod)
    waits = None if page is None else page.read()
    return _PodShm(pod, reading, "" if reading is not None else " ".join(said.split()), waits)


def _lines(cluster: Cluster, run: ClusterRun, result: Result, pods: Sequence[Pod], code: int | None) -> Iterator[str]:
    yield f"job        {run.job} ({run.main} in {cluster.words})"
    why = (
        f": {result.words or result.reason}"
        if result.state in {"failed", "unknown"} and (result.words or result.reason)
        else ""
    )
    ended = f", exit code {code}" if code is not None else ""
    yield f"state      {state_now(result, pods)}{ended}{why}"
    if not pods:
        yield "pods       none" + (" any more" if result.ended else " yet")


def _pod_lines(readings: Sequence[_PodShm]) -> Iterator[str]:
    for read in readings:
        pod = read.pod
        name = pod.name if pod.node_index is None else f"[{pod.node_index}] {pod.name}"
        restarts = f", {pod.restarts} restarts" if pod.restarts else ""
        yield f"pod        {name}: {_pod_state(pod)}{restarts}"
        if pod.state == "running":
            yield f"  /dev/shm {_shm(read)}"
        if read.waits is not None and (words := waited_words(read.waits, read.seconds)):
            yield f"  data     {words}"


def _pod_state(pod: Pod) -> str:
    where = f" on node {pod.node}" if pod.node else ""
    if pod.state == "running":
        health = "" if pod.ready else ", its health check does not pass"
        return f"running{where} for {age(time.time() - pod.started)}{health}"
    if pod.state == "waiting":
        return f"waiting{where}" + (f" ({pod.reason})" if pod.reason else "")
    ran = f", {age(pod.finished - pod.started)} after its start" if pod.started and pod.finished else ""
    return f"{end_of(pod)}{ran}{where}"


def _shm(read: _PodShm) -> str:
    reading, planned = read.reading, read.pod.planned
    size = f"size {human_size(read.pod.shm_size)}" if read.pod.shm_size else "size unlimited"
    if reading is None:
        why = "its health command says nothing" if read.pod.health_command else "it has no health command"
        return f"{size}, not read: {read.unread or why}"
    parts = [f"used {human_size(reading.used)}", f"peak {human_size(reading.peak)}"]
    parts.append(f"size {human_size(reading.size)}" if reading.size else "size unlimited")
    if planned.need is not None and not planned.unsized:
        parts.append(f"one-epoch peak {needed_size(planned.need)}")
    if reading.workers is not None:
        parts.append(f"workers {reading.workers} of {'unknown' if planned.processes is None else planned.processes}")
    return ", ".join(parts)


def _suggestion(readings: Sequence[_PodShm]) -> str:
    """Return what an unsized run is to be given, by the highest peak of its pods."""
    peak = highest(peak_of(read.reading) for read in readings)
    pods = [read.pod for read in readings if read.reading is not None]
    return measured_line(pods[0].planned, peak, size=pods[0].shm_size, exit_code=None) if pods else ""
