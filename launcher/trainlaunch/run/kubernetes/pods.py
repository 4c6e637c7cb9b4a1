"""A pod as its status tells it: where it runs, why it doesn't yet, how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trainlaunch.container.preflight import preflight_behind_entrypoint
from trainlaunch.formats.quantities import bytes_of
from trainlaunch.job.reserved import KUBERNETES_LABEL_PREFIX, PLAN_VARIABLE
from trainlaunch.kinds import JOB_SET
from trainlaunch.plan.instrumentation import DATA_WAIT
from trainlaunch.plan.plan_label import LABEL as PLAN_LABEL
from trainlaunch.plan.plan_label import Planned, planned_from, whole_number
from trainlaunch.run.kubernetes.removal_times import removal_of, stamped

INDEX_LABELS = ("batch.kubernetes.io/job-completion-index", "jobset.sigs.k8s.io/job-global-index")
REPLICA_INDEX, REPLICA_TYPE = "training.kubeflow.org/replica-index", "training.kubeflow.org/replica-type"
DEFAULT_GRACE = 30  # seconds of a pod that sets none
ENDED = frozenset({"Succeeded", "Failed"})
NEVER_STARTED = frozenset({"ContainerCannotRun", "StartError"})  # the runtime's own 127 or 128: no process has it


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod; `state` is waiting, running or ended, of the container that trains. Times are seconds since the epoch.

    `node` is the cluster's machine that it runs on, `node_index` which of the job's nodes it is (None: the only one).
    `reason` and `words` are the cluster's for where it is now: why it waits, or why it ended.
    `exit_code` is None until its container ended, and where nobody knows it. `fronted`: a program of the image starts
    the preflight. `disrupted`: the cluster took it away (an eviction, a drain, a preemption), for no reason of its own.
    `interrupted`: it was told to end, and its handler then ended it with 0: it saved, and did not finish.
    `removal_asked` is when somebody deleted it, 0 where nobody did; `grace` is the seconds that it then has.
    """

    uid: str
    name: str
    node_index: int | None
    restart_attempt: int | None
    created: float
    node: str
    phase: str
    state: str
    container: str
    reason: str
    words: str
    exit_code: int | None
    oom_killed: bool
    termination_message: str
    started: float
    finished: float
    restarts: int
    ready: bool
    deleting: bool
    scheduled: bool
    health_command: tuple[str, ...]
    memory: int
    shm_size: int
    planned: Planned
    labels: Mapping[str, str]
    fronted: bool = False
    has_liveness: bool = False
    observed: bool = False
    disrupted: bool = False
    interrupted: bool = False
    removal_asked: float = 0.0
    grace: int = DEFAULT_GRACE

    @property
    def id(self) -> str:
        """What tells it from a later pod of the same name."""
        return self.uid

    @property
    def ended(self) -> bool:
        """Whether its container will print nothing more."""
        return self.state == "ended"

    @property
    def failed(self) -> bool:
        """Whether it ended badly, or is about to: its last process may still save its work."""
        return self.phase == "Failed" or self.interrupted or (self.ended and bool(self.exit_code))

    @property
    def ran(self) -> bool:
        """Whether a process of it ever started."""
        return self.started > 0


def pod_from(raw: Mapping[str, Any]) -> Pod:
    """Return what the API tells about a pod."""
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    container = _training_container(spec)
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    own, ended = _states(status, str(container.get("name", "")))
    # A kubelet calls a pod Failed at its deadline, or when it evicts it, and then stops what runs in it.
    state = "running" if own.get("running") else "ended" if ended or status.get("phase") in ENDED else "waiting"
    reason, words = _reason(status, conditions, state, ended)
    return Pod(
        uid=str(meta.get("uid", "")),
        name=str(meta["name"]),
        node_index=node_index_of(meta),
        restart_attempt=whole_number((meta.get("labels") or {}).get(JOB_SET.restarts_label)),
        created=stamped(meta.get("creationTimestamp")),
        node=str(spec.get("nodeName") or ""),
        phase=str(status.get("phase") or "Pending"),
        state=state,
        container=str(container.get("name", "")),
        reason=reason,
        words=" ".join(words.split()),
        exit_code=None if ended.get("reason") in NEVER_STARTED else ended.get("exitCode"),
        oom_killed=ended.get("reason") == "OOMKilled",
        termination_message=str(ended.get("message") or ""),
        started=stamped((ended or own.get("running") or {}).get("startedAt")),
        finished=stamped(ended.get("finishedAt")),
        restarts=sum(int(each.get("restartCount") or 0) for each in status.get("containerStatuses") or ()),
        ready=(conditions.get("Ready") or {}).get("status") == "True",
        deleting="deletionTimestamp" in meta,
        scheduled=bool(spec.get("nodeName")),
        **_of_container(container),
        memory=bytes_of(((container.get("resources") or {}).get("limits") or {}).get("memory")),
        shm_size=_shm_size(spec, container),
        planned=planned_from(
            (meta.get("annotations") or {}).get(KUBERNETES_LABEL_PREFIX + PLAN_LABEL), size=_shm_size(spec, container)
        ),
        labels=meta.get("labels") or {},
        **removal_of(meta, status, conditions, ended),
        grace=int(spec.get("terminationGracePeriodSeconds") or DEFAULT_GRACE),
    )


def _of_container(container: Mapping[str, Any]) -> dict[str, Any]:
    argv = [*(container.get("command") or ()), *(container.get("args") or ())]
    env = {each.get("name"): each.get("value") for each in container.get("env") or ()}
    return {
        "health_command": _health_command(container),
        "has_liveness": "livenessProbe" in container,
        "observed": DATA_WAIT in str(env.get(PLAN_VARIABLE)),
        "fronted": preflight_behind_entrypoint(argv),
    }


def _training_container(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the container that has the planned /dev/shm; controllers may add others beside it."""
    containers = spec.get("containers") or [{}]
    mine = (
        each for each in containers if any(m.get("mountPath") == "/dev/shm" for m in each.get("volumeMounts") or ())
    )
    return next(mine, containers[0])


def _states(status: Mapping[str, Any], container: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the container's state, and how it ended (empty while it has not); a failed init container ends a pod."""
    for each in status.get("initContainerStatuses") or ():
        failed = (each.get("state") or {}).get("terminated") or {}
        if failed.get("exitCode") and status.get("phase") == "Failed":
            return each["state"], failed
    for each in status.get("containerStatuses") or ():
        if each.get("name") == container:
            state = each.get("state") or {}
            return state, state.get("terminated") or {}
    return {}, {}


def _reason(
    status: Mapping[str, Any], conditions: Mapping[str, Mapping[str, Any]], state: str, ended: Mapping[str, Any]
) -> tuple[str, str]:
    """Return the cluster's word and sentence for why a pod waits or ended, the most telling first."""
    if state == "waiting":
        for each in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
            waiting = (each.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") not in {None, "PodInitializing"}:
                return str(waiting["reason"]), str(waiting.get("message") or "")
        scheduled = conditions.get("PodScheduled") or {}
        if scheduled.get("status") == "False":
            return str(scheduled.get("reason") or "Unschedulable"), str(scheduled.get("message") or "")
        return "", ""
    disrupted = conditions.get("DisruptionTarget") or {}
    if disrupted.get("status") == "True" and status.get("reason") != "Evicted":
        words = dict.fromkeys(str(each.get("message") or "") for each in (disrupted, status))
        return str(disrupted.get("reason") or "DisruptionTarget"), "; ".join(filter(None, words))
    if status.get("reason"):
        return str(status["reason"]), str(status.get("message") or "")
    if ended.get("reason") in {*NEVER_STARTED, "ContainerStatusUnknown"}:
        return str(ended["reason"]), str(ended.get("message") or "")
    return "", ""


def node_index_of(meta: Mapping[str, Any]) -> int | None:
    """Return the index of the node that a pod is, as its controller counts; None for a pod of its own."""
    known = {**(meta.get("annotations") or {}), **(meta.get("labels") or {})}
    if REPLICA_INDEX in known:
        index = whole_number(known[REPLICA_INDEX])
        return None if index is None else index + (known.get(REPLICA_TYPE) == "worker")
    indexes = [index for key in INDEX_LABELS if (index := whole_number(known.get(key))) is not None]
    return max(indexes) if indexes else None


def first_to_fail(pods: Iterable[Pod]) -> Pod | None:
    """Return the pod that failed first in the last attempt: its failure is the others' cause.

    At the same second one with a code of its own stands before those that a signal ended.
    """
    failed = [each for each in pods if each.failed]
    if not failed:
        return None
    attempts = attempts_of(pods)
    last = max(attempts[each.uid] for each in failed)
    return min(
        (each for each in failed if attempts[each.uid] == last),
        key=lambda pod: (
            pod.exit_code is None,
            pod.finished or float("inf"),
            (pod.exit_code or 0) > 128 or pod.interrupted,
            not pod.disrupted,
            pod.node_index or 0,
        ),
    )


def in_order(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Return pods oldest first; of those made in the same second one that failed is the one that was replaced."""
    forever = float("inf")
    return tuple(
        sorted(
            pods, key=lambda pod: (pod.created, not pod.failed, pod.finished or forever, pod.node_index or 0, pod.name)
        )
    )


def attempts_of(pods: Iterable[Pod]) -> dict[str, int]:
    """Return which attempt each pod belongs to, by uid: a controller's own count, else the order of its node's pods."""
    attempts: dict[str, int] = {}
    seen: dict[int | None, int] = {}
    for pod in in_order(pods):
        seen[pod.node_index] = seen.get(pod.node_index, 0) + 1
        attempts[pod.uid] = seen[pod.node_index] if pod.restart_attempt is None else pod.restart_attempt + 1
    return attempts


def last_of_nodes(pods: Iterable[Pod]) -> list[Pod]:
    """Return each node's pod of its last attempt: how the ones before it ended counts no more."""
    pods = in_order(pods)
    attempts = attempts_of(pods)
    return list({pod.node_index: pod for pod in sorted(pods, key=lambda pod: attempts[pod.uid])}.values())


def end_of(pod: Pod) -> str:
    """Return how a pod ended, as a clause."""
    code = "without an exit code" if pod.exit_code is None else f"with exit code {pod.exit_code}"
    oom = ", OOMKilled" if pod.oom_killed else ""
    why = f" ({pod.reason}{f': {pod.words}' if pod.words else ''})" if pod.reason else ""
    return f"ended {code}{oom}{why}"


def interruption(pod: Pod) -> str:
    """Return what is said of a pod that was told to end and ended with 0."""
    why = f" ({pod.reason}{f': {pod.words}' if pod.words else ''})" if pod.reason else " (somebody deleted it)"
    return (
        f"pod {pod.name} was taken away{why} and ended with exit code 0: what it saved is there, and it did not finish"
    )


def taken_away(pod: Pod) -> str:
    """Return what is said of a pod that still runs and will not for long; on a lost node that may take for ever."""
    why = f" ({pod.reason}: {pod.words})" if pod.reason else ""
    return f"pod {pod.name} on node {pod.node} is being taken away{why}"


def _health_command(container: Mapping[str, Any]) -> tuple[str, ...]:
    for kind in ("readinessProbe", "livenessProbe"):
        command = ((container.get(kind) or {}).get("exec") or {}).get("command")
        if command:
            return tuple(str(each).replace("$$", "$") for each in command)  # as the kubelet reads them
    return ()


def _shm_size(spec: Mapping[str, Any], container: Mapping[str, Any]) -> int:
    mounts = container.get("volumeMounts") or ()
    name = next((each.get("name") for each in mounts if each.get("mountPath") == "/dev/shm"), None)
    for volume in spec.get("volumes") or ():
        if volume.get("name") == name:
            return bytes_of((volume.get("emptyDir") or {}).get("sizeLimit"))
    return 0
