"""A shell on a cluster: in a pod of its own like the job's, or in one that runs.

The only place that imports websocket-client.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import TargetUnavailable
from trainlaunch.exit_codes import EXIT_BEFORE_START
from trainlaunch.job.reserved import KUBERNETES_LABEL_PREFIX
from trainlaunch.kinds import JOB, POD
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.target_names import shortened
from trainlaunch.run.base.backend import Say
from trainlaunch.run.base.container_shell import (
    MARK,
    TerminalSize,
    hold_argv,
    run_inside,
)
from trainlaunch.run.kubernetes.api_errors import REFUSED, ApiRefused
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.field_lookup import refusals
from trainlaunch.run.kubernetes.launch import documents_of
from trainlaunch.run.kubernetes.objects import (
    POLL_SECONDS,
    Object,
    Reference,
    create,
    delete,
    get_object,
    list_objects,
    try_out,
)
from trainlaunch.run.kubernetes.pending import Reasons
from trainlaunch.run.kubernetes.pods import Pod, pod_from
from trainlaunch.run.kubernetes.results import result_of
from trainlaunch.run.kubernetes.runs import Identity, who_am_i

SHELL_LABEL, SHELL_OWNER = (KUBERNETES_LABEL_PREFIX + each for each in ("shell", "shell-owner"))
MAX_SECONDS = 12 * 3600  # after which the cluster itself ends a shell, should nothing else have
STDIN, STDOUT, STDERR, STATUS, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255


class PodCommand:
    """A command in a pod over its WebSocket: frames of a channel's number and bytes, both ways."""

    def __init__(self, cluster: Cluster, pod: Pod, argv: Sequence[str], terminal: bool) -> None:
        client = cluster.open_command(pod.name, pod.container, argv, terminal=terminal)
        self._socket = client.sock
        self._can_close_input = client.subprotocol == "v5.channel.k8s.io"
        self._status = b""

    def output(self) -> Iterator[tuple[bool, bytes]]:
        """Yield what it writes, until the other side closes or the connection breaks; a terminal has one stream."""
        from websocket import ABNF, WebSocketException

        with contextlib.suppress(OSError, WebSocketException):
            while True:
                kind, frame = self._socket.recv_data_frame(True)
                if kind == ABNF.OPCODE_CLOSE:
                    return
                if kind not in (ABNF.OPCODE_BINARY, ABNF.OPCODE_TEXT) or not frame.data:
                    continue
                channel, data = frame.data[0], frame.data[1:]
                if channel in {STDOUT, STDERR} and data:
                    yield channel == STDERR, data
                elif channel == STATUS:
                    self._status += data

    def send(self, data: bytes) -> None:
        """Write to its stdin."""
        self._send(STDIN, data)

    def end_input(self) -> None:
        """Let it read the end of its stdin: since version 5 of the protocol, which Kubernetes 1.30 speaks."""
        if self._can_close_input:
            self._send(CLOSE, bytes([STDIN]))

    def resize(self, size: TerminalSize) -> None:
        """Tell its terminal a size."""
        self._send(RESIZE, json.dumps({"Width": size.columns, "Height": size.rows}).encode())

    def _send(self, channel: int, data: bytes) -> None:
        """Send a frame. Raises OSError where the connection is gone."""
        from websocket import ABNF, WebSocketException

        try:
            self._socket.send(bytes([channel]) + data, opcode=ABNF.OPCODE_BINARY)
        except WebSocketException as cause:
            raise OSError(str(cause)) from cause

    def exit_code(self) -> int | None:
        """Return the code of its status; None where the connection broke before that."""
        try:
            status = json.loads(self._status)
        except ValueError:
            return None
        if status.get("status") == "Success":
            return 0
        causes = (status.get("details") or {}).get("causes") or ()
        codes = [str(each.get("message")) for each in causes if each.get("reason") == "ExitCode"]
        return int(codes[0]) if codes and codes[0].isdigit() else None

    def close(self) -> None:
        """Close the connection without waiting for the other side."""
        with contextlib.suppress(OSError):
            self._socket.shutdown()


def run_in_pod(cluster: Cluster, pod: Pod, argv: Sequence[str], token: str, *, term: str | None, say: Say) -> int:
    """Run a command in a pod; `term` is the kind of its terminal, None for none. Raises TargetUnavailable."""
    code = run_inside(functools.partial(PodCommand, cluster, pod), argv, token, term=term)
    if code is not None:
        return code
    say(
        f"the connection to pod {pod.name} broke before the command ended, as when the kubelet of node {pod.node} or "
        "the API server starts again: the command is stopped, and how it would have ended is unknown"
    )
    return EXIT_BEFORE_START


@contextlib.contextmanager
def own_pod(cluster: Cluster, plan: LaunchPlan, token: str, say: Say) -> Iterator[Pod]:
    """Give a running pod like the job's that only holds a shell; nothing of it is left afterwards.

    A Job makes it, which the cluster itself removes as soon as it has ended. It has none of the labels by which a run
    is found. Raises TargetUnavailable, also where the pod can't start.
    """
    document = _document(cluster, plan, token, who_am_i(cluster))
    try:
        for warning in try_out(cluster, document)[1]:
            say(f"the API server warns about it: {warning}")
        made = create(cluster, document)
    except ApiRefused as refused:
        raise TargetUnavailable(refusals(cluster, plan.job, document, refused)) from refused
    path = f"/apis/{JOB.api_version}/namespaces/{cluster.namespace}/{JOB.plural}"
    place = Reference(path, JOB.name, str(document["metadata"]["name"]))
    try:
        yield _running_pod(cluster, place, made, plan, say)
    finally:
        delete(cluster, place)


def _document(cluster: Cluster, plan: LaunchPlan, token: str, me: Identity) -> dict[str, Any]:
    """Return the Job of a shell plan with a process that only waits, under names that no run has."""
    kubernetes = plan.job.kubernetes._replace(kind=JOB.word)
    patch = plan.job.patch if plan.job.kubernetes.kind == JOB.word else None
    plan = plan._replace(job=plan.job._replace(kubernetes=kubernetes, patch=patch))
    document = next(each for each in documents_of(plan, cluster.namespace) if each["kind"] == JOB.name)
    document = copy.deepcopy(document)
    template = document["spec"]["template"]
    labels = {SHELL_LABEL: token}
    for holder in (document, template):
        meta = holder.setdefault("metadata", {})
        meta["labels"] = {**_of_others(meta.get("labels")), **labels}
        meta["annotations"] = _of_others(meta.get("annotations"))
    document["metadata"]["name"] = f"{shortened(plan.name, 40)}-shell-{token[:8]}"
    if me.name:
        document["metadata"]["annotations"][SHELL_OWNER] = me.name
    document["spec"] |= {
        "backoffLimit": 0,
        "ttlSecondsAfterFinished": 0,
        "activeDeadlineSeconds": MAX_SECONDS,
    }
    document["spec"].pop("podFailurePolicy", None)
    _hold(template["spec"], token)
    return document


def _of_others(pairs: Mapping[str, str] | None) -> dict[str, str]:
    return {key: value for key, value in (pairs or {}).items() if not key.startswith(KUBERNETES_LABEL_PREFIX)}


def _hold(pod: dict[str, Any], token: str) -> None:
    pod["terminationGracePeriodSeconds"] = 5
    container = next(
        each
        for each in pod["containers"]
        if any(mount.get("mountPath") == "/dev/shm" for mount in each.get("volumeMounts") or ())
    )
    for probe in ("readinessProbe", "livenessProbe", "startupProbe"):
        container.pop(probe, None)
    # The kubelet would expand $(…) and halve pairs of dollars.
    container["command"] = [word.replace("$", "$$") for word in hold_argv()]
    container.pop("args", None)
    container["env"] = [*(container.get("env") or ()), {"name": MARK, "value": token}]


def _not_running(cluster: Cluster, place: Reference, why: str) -> Diagnostic:
    return Diagnostic(
        REFUSED,
        f"the shell's pod in {cluster.words} does not run",
        "put that right, or enter a run by its name; nothing is left of this one",
        why=f"{place}: {why}",
    )


def _running_pod(cluster: Cluster, place: Reference, made: Object, plan: LaunchPlan, say: Say) -> Pod:
    """Wait for the pod, saying why it doesn't run yet; raises TargetUnavailable where it can't, or is gone."""
    reasons = Reasons(cluster, place, plan.job)
    since: dict[str, float] = {}
    while True:
        pods = [pod_from(thing) for _, thing in list_objects(cluster, POD.name, f"{JOB.pod_label}={place.name}")]
        running = [pod for pod in pods if pod.state == "running"]
        if running:
            return running[0]
        main = get_object(cluster, place)
        if main is None or result_of({**main, "kind": place.kind}).ended:
            words = "" if main is None else result_of({**main, "kind": place.kind}).words
            raise TargetUnavailable([_not_running(cluster, place, words or "it is gone")])
        for wait in reasons.waits(pods, main):
            if wait.reason not in since:
                since[wait.reason] = cluster.clock.now()
                say(wait.sentence)
            if cluster.clock.now() - since[wait.reason] >= wait.patience:
                raise TargetUnavailable([_not_running(cluster, place, wait.sentence)])
        time.sleep(cluster.clock.real(POLL_SECONDS))
