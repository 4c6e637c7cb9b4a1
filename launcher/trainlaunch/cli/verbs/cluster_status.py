"""`ps` and `status` on target kubernetes: workloads, their pods, and why one waits."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainlaunch.cli.arguments.run_argument import owned_by, say_once
from trainlaunch.cli.output.report import document
from trainlaunch.cli.output.streams import Streams
from trainlaunch.cli.runs.cluster import cluster_job, named_cluster
from trainlaunch.cli.runs.runs import say_diagnoses
from trainlaunch.cli.verbs.ps import COLUMNS, SHRINKING, Row, Table, age, names, repeated
from trainlaunch.diagnose import causes_json, explain_end
from trainlaunch.run.base.backend import ShmReading
from trainlaunch.run.base.shm_peak import highest, measured_line, peak_of
from trainlaunch.targets import KUBERNETES
from trainlaunch.units import format_size, human_size

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.evidence import Evidence
    from trainlaunch.run.kubernetes.client import Cluster
    from trainlaunch.run.kubernetes.owned_runs import OwnedRun
    from trainlaunch.run.kubernetes.pods import Pod
    from trainlaunch.run.kubernetes.runs import ClusterRun


def ps(args: argparse.Namespace, streams: Streams) -> int:
    """List every run that carries our labels in the namespace, newest first."""
    from trainlaunch.run.kubernetes.objects import ForbiddenKinds
    from trainlaunch.run.kubernetes.owned_runs import owned_runs
    from trainlaunch.run.kubernetes.runs import pods_of_run

    with named_cluster(args, namespace=None, name="") as place:
        cluster = place.cluster

        def found() -> Sequence[tuple[OwnedRun, Sequence[Pod]]]:
            unlisted = ForbiddenKinds()
            known = owned_by(args.owner, owned_runs(cluster, unlisted))
            shown = [each for each in known if each.running or not args.running]
            if not shown and unlisted.plurals:
                say_once(unlisted.line(cluster))
            return [(each, pods_of_run(cluster, each.run)) for each in shown]

        if args.output == "json":
            return repeated(args, streams, lambda: streams.result(document({"runs": _documents(cluster, found())})))
        if args.output == "names":
            return repeated(args, streams, lambda: streams.result(names([each for each, _ in found()])))
        nothing = f"there are no runs of trainlaunch in {cluster.words}"
        shown = Table(streams, COLUMNS, live=args.watch, shrinking=SHRINKING, nothing=nothing)
        return repeated(args, streams, lambda: shown.show([_row(run, pods) for run, pods in found()]))


def _documents(cluster: Cluster, found: Sequence[tuple[OwnedRun, Sequence[Pod]]]) -> list[dict[str, Any]]:
    return [{**_run_json(cluster, each.run, pods), "owner": each.owner or None} for each, pods in found]


def _row(owned: OwnedRun, pods: Sequence[Pod]) -> Row:
    run, code = owned.run, _code(owned.run, pods)
    size = max((pod.shm_size for pod in pods), default=0)
    return (
        run.job,
        owned.id,
        owned.owner or "-",
        _state(run, pods),
        "-" if code is None else str(code),
        age(time.time() - run.created),
        format_size(size) if size else "-",
        KUBERNETES.name,
    )


def _code(run: ClusterRun, pods: Sequence[Pod]) -> int | None:
    from trainlaunch.run.kubernetes.runs import exit_code_of

    return exit_code_of(run.result, pods) if run.result.ended else None


def _state(run: ClusterRun, pods: Sequence[Pod]) -> str:
    from trainlaunch.run.kubernetes.runs import state_now

    return state_now(run.result, pods)


def _run_json(cluster: Cluster, run: ClusterRun, pods: Sequence[Pod]) -> dict[str, Any]:
    result = run.result
    return {
        "job": run.job,
        "target": KUBERNETES.name,
        "context": cluster.access.context or None,
        "namespace": cluster.namespace,
        "kind": run.main.kind,
        "name": run.main.name,
        "state": _state(run, pods),
        "reason": result.reason or None,
        "exit_code": _code(run, pods),
        "created": run.created,
        "finished": result.finished or None,
        "pods": [_pod_json(pod) for pod in pods],
    }


def _pod_json(pod: Pod) -> dict[str, Any]:
    return {
        "name": pod.name,
        "rank": pod.node_index,
        "node": pod.node or None,
        "state": pod.state,
        "phase": pod.phase,
        "reason": pod.reason or None,
        "message": pod.words or None,
        "exit_code": pod.exit_code,
        "oom_killed": pod.oom_killed,
        "restarts": pod.restarts,
        "started": pod.started or None,
        "finished": pod.finished or None,
        "shm_size": pod.shm_size or None,
    }


@dataclass(frozen=True, slots=True)
class _PodShm:
    """A pod, what its /dev/shm holds, and why that could not be read."""

    pod: Pod
    reading: ShmReading | None
    unread: str


def status(args: argparse.Namespace, streams: Streams) -> int:
    """Show the job's newest run with its pods."""
    from trainlaunch.cli.runs.cluster_run import newest_run
    from trainlaunch.run.base.preflight_line import NEVER_SPOKE
    from trainlaunch.run.kubernetes.pending import Reasons
    from trainlaunch.run.kubernetes.runs import pods_of_run
    from trainlaunch.run.kubernetes.silence import is_silent

    with cluster_job(args) as place:
        run = newest_run(args, place.cluster, streams.say)
        pods = pods_of_run(place.cluster, run)
        reasons = Reasons(place.cluster, run.main, job=None, patience=0)
        waits = [] if run.result.ended else [each.sentence for each in reasons.waits(pods, run.thing)]
        readings = [_read_pod(place.cluster, pod) for pod in pods]
        evidence = _evidence(place.cluster, run, pods, streams) if run.result.ended else None
        code = _code(run, pods)
        silent = code == 0 and is_silent(place.cluster, pods)
    if args.output == "json":
        causes = [] if evidence is None else causes_json(explain_end(evidence))
        streams.result(
            document({**_status_json(place.cluster, run, readings, waits), "never_ran": silent, "causes": causes})
        )
    else:
        told = [f"waits      {each}" for each in waits]
        told += [f"preflight  {NEVER_SPOKE}"] * silent
        for line in [*_lines(place.cluster, run, pods, code), *told, *_pod_lines(readings), *_suggested(readings)]:
            streams.show(line + "\n")
        if evidence is not None:
            say_diagnoses(evidence, streams, lambda line: streams.result(line + "\n"))
    return 1 if code or silent or run.result.state == "failed" else 0


def _evidence(cluster: Cluster, run: ClusterRun, pods: Sequence[Pod], streams: Streams) -> Evidence:
    from trainlaunch.run.kubernetes.exit_status import evidence_of_ended
    from trainlaunch.run.kubernetes.follow import end_of_run

    return evidence_of_ended(cluster, end_of_run(run.result, pods), streams.say)


def _read_pod(cluster: Cluster, pod: Pod) -> _PodShm:
    from trainlaunch.run.kubernetes.exec import read_shm
    from trainlaunch.run.kubernetes.execution import ExecRefused

    try:
        return _PodShm(pod, read_shm(cluster, pod), "")
    except ExecRefused as refused:
        return _PodShm(pod, None, str(refused))


def _lines(cluster: Cluster, run: ClusterRun, pods: Sequence[Pod], code: int | None) -> Iterator[str]:
    result = run.result
    yield f"job        {run.job} ({run.main} in {cluster.words})"
    why = f": {result.words or result.reason}" if result.state == "failed" and (result.words or result.reason) else ""
    ended = f", exit code {code}" if code is not None else ""
    yield f"state      {_state(run, pods)}{ended}{why}"
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


def _pod_state(pod: Pod) -> str:
    from trainlaunch.run.kubernetes.pods import end_of

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
        return f"{size}, not read: {read.unread or 'it has no health command'}"
    parts = [f"used {human_size(reading.used)}", f"peak {human_size(reading.peak)}"]
    parts.append(f"size {human_size(reading.size)}" if reading.size else "size unlimited")
    if planned.need is not None and not planned.unsized:
        parts.append(f"the plan needs {human_size(planned.need)}")
    if reading.workers is not None:
        parts.append(f"workers {reading.workers} of {'unknown' if planned.processes is None else planned.processes}")
    return ", ".join(parts)


def _suggested(readings: Sequence[_PodShm]) -> list[str]:
    peak = highest(peak_of(read.reading) for read in readings)
    pods = [read.pod for read in readings if read.reading is not None]
    return measured_line(pods[0].planned, peak, size=pods[0].shm_size, exit_code=None).splitlines() if pods else []


def _status_json(
    cluster: Cluster, run: ClusterRun, readings: Sequence[_PodShm], waits: Sequence[str]
) -> dict[str, Any]:
    said = _run_json(cluster, run, [read.pod for read in readings])
    for pod, read in zip(said["pods"], readings, strict=True):
        reading = read.reading
        pod["shm"] = {
            "used": reading.used if reading else None,
            "peak": reading.peak if reading else None,
            "size": reading.size if reading else read.pod.shm_size or None,
            "need": read.pod.planned.need,
            "unread": read.unread or None,
        }
        running = reading.workers if reading else None
        pod["workers"] = {"running": running, "planned": read.pod.planned.processes}
    return {**said, "waits": list(waits), "suggestion": "\n".join(_suggested(readings)) or None}
