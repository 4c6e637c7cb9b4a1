"""What `docker inspect`, `podman inspect`, pods and their events say about a run, as JSON or YAML."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from trainlaunch.diagnose.base.evidence import Evidence, RunEvent
from trainlaunch.formats.quantities import bytes_of
from trainlaunch.targets import KUBERNETES

SHM = "/dev/shm"
_PRIVATE = frozenset({"", "private", "shareable"})
_OOM = "OOMKilled"


class NotInspectedError(ValueError):
    """A text that is no JSON or YAML, or has nothing in it that is known; its message says which."""


def with_inspected(evidence: Evidence, text: str) -> Evidence:
    """Return evidence with what a text adds: what is known already stays. Raises NotInspectedError."""
    objects = [each for each in _objects(_parsed(text)) if isinstance(each, Mapping)]
    known = False
    for each in sorted(objects, key=_failed):
        if "HostConfig" in each or "State" in each:
            evidence, known = _engine(evidence, each), True
        elif each.get("kind") == "Event" or "involvedObject" in each or "regarding" in each:
            evidence, known = _event(evidence, each), True
        elif "spec" in each or "status" in each:
            evidence, known = _workload(evidence, each), True
        elif {"memory_limit", "sizeLimit", "target"} & each.keys():
            evidence, known = _numbers(evidence, each), True
    if not known:
        raise NotInspectedError("it has neither a container of `docker inspect`, nor a pod, nor an event")
    return evidence


def _parsed(text: str) -> list[Any]:
    try:
        return [json.loads(text)]
    except ValueError:
        pass
    import yaml  # JSON is the usual form

    try:
        return list(yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError as error:
        raise NotInspectedError(f"it is neither JSON nor YAML: {getattr(error, 'problem', None) or error}") from error


def _objects(values: list[Any]) -> Iterator[Any]:
    """Yield the objects of documents: of lists, and of Kubernetes' Lists, their items."""
    for value in values:
        if isinstance(value, list):
            yield from _objects(value)
        elif isinstance(value, Mapping) and isinstance(value.get("items"), list):
            yield from _objects(value["items"])
        else:
            yield value


def _failed(each: Mapping[str, Any]) -> bool:
    """Whether an object tells of a failure, which then says more than what the others tell."""
    status = _mapping(each, "status")
    state = _mapping(each, "State")
    return bool(status.get("phase") == "Failed" or state.get("ExitCode") or state.get("OOMKilled"))


def _engine(evidence: Evidence, each: Mapping[str, Any]) -> Evidence:
    host, state, config = _mapping(each, "HostConfig"), _mapping(each, "State"), _mapping(each, "Config")
    ipc = str(host.get("IpcMode") or "")
    ended = state.get("Status") not in {"running", "created", "paused"} and "ExitCode" in state
    limits = {str(one.get("Name", "")).lower(): one for one in host.get("Ulimits") or () if isinstance(one, Mapping)}
    nofile = limits.get("nofile") or limits.get("rlimit_nofile") or {}
    requests = [one for one in host.get("DeviceRequests") or () if isinstance(one, Mapping)]
    gpus = sum(len(one.get("DeviceIDs") or ()) or max(int(one.get("Count") or 0), 0) for one in requests)
    return replace(
        evidence,
        exit_code=evidence.exit_code if evidence.exit_code is not None or not ended else _number(state["ExitCode"]),
        oom_killed=evidence.oom_killed or _told(state, "OOMKilled", evidence.oom_killed),
        container=str(each.get("Name") or "").removeprefix("/") or evidence.container,
        engine="podman" if "OCIRuntime" in each else evidence.engine,
        error=evidence.error or str(state.get("Error") or ""),
        ipc_mode=ipc,
        private_shm=ipc in _PRIVATE,
        shm_size=_number(host.get("ShmSize")) or evidence.shm_size,
        memory=_number(host.get("Memory")) or evidence.memory,
        pids_limit=max(_number(host.get("PidsLimit")), 0),
        nofile=_number(nofile.get("Soft")),
        gpus=gpus if requests else evidence.gpus,
        image=str(config.get("Image") or evidence.image),
    )


def _workload(evidence: Evidence, each: Mapping[str, Any]) -> Evidence:
    """Return evidence with a pod's, or with the conditions of a Job."""
    evidence = replace(evidence, target=KUBERNETES.name)
    status, spec = _mapping(each, "status"), _mapping(each, "spec")
    conditions = [one for one in status.get("conditions") or () if isinstance(one, Mapping)]
    told = [
        RunEvent(str(one.get("reason") or ""), str(one.get("message") or ""))
        for one in conditions
        if str(one.get("status")) == "True" and one.get("type") in {"DisruptionTarget", "Failed", "FailureTarget"}
    ]
    if status.get("reason"):
        told.insert(0, RunEvent(str(status["reason"]), str(status.get("message") or "")))
    evidence = replace(evidence, events=(*evidence.events, *told))
    if "containers" not in spec and "containerStatuses" not in status:
        return evidence
    name, namespace = (str(_mapping(each, "metadata").get(key) or "") for key in ("name", "namespace"))
    evidence = replace(evidence, container=name, namespace=namespace)
    for container in status.get("containerStatuses") or ():
        evidence = _container_status(evidence, container)
    return _pod_spec(evidence, spec)


def _container_status(evidence: Evidence, container: Any) -> Evidence:
    for which in ("state", "lastState"):
        state = _mapping(container, which)
        ended, waits = _mapping(state, "terminated"), _mapping(state, "waiting")
        reason, words = str(ended.get("reason") or ""), str(ended.get("message") or "")
        if evidence.exit_code is None and ended.get("exitCode"):
            evidence = replace(evidence, exit_code=_number(ended["exitCode"]))
        if ended:
            evidence = replace(evidence, oom_killed=evidence.oom_killed or reason == _OOM)
        if reason not in {"", "Error", "Completed", _OOM}:
            evidence = replace(evidence, events=(*evidence.events, RunEvent(reason, words)))
        if waits.get("reason") not in {None, "ContainerCreating", "PodInitializing", "CrashLoopBackOff"}:
            event = RunEvent(str(waits["reason"]), str(waits.get("message") or ""))
            evidence = replace(evidence, events=(*evidence.events, event))
    return evidence


def _pod_spec(evidence: Evidence, spec: Mapping[str, Any]) -> Evidence:
    volumes = {str(one.get("name")): one for one in spec.get("volumes") or () if isinstance(one, Mapping)}
    in_memory = {name for name, one in volumes.items() if _mapping(one, "emptyDir").get("medium") == "Memory"}
    evidence = replace(evidence, memory_volumes=tuple(sorted(in_memory)))
    for container in spec.get("containers") or ():
        limits = _mapping(_mapping(container, "resources"), "limits")
        gpus = sum(_number(count) for name, count in limits.items() if str(name).endswith("/gpu"))
        evidence = replace(
            evidence,
            memory=bytes_of(limits["memory"]) if "memory" in limits else evidence.memory,
            gpus=gpus or evidence.gpus,
            image=str(container.get("image") or evidence.image),
        )
        for mount in container.get("volumeMounts") or ():
            if isinstance(mount, Mapping) and str(mount.get("mountPath", "")).rstrip("/") == SHM:
                name = str(mount.get("name"))
                limit = _mapping(volumes.get(name, {}), "emptyDir").get("sizeLimit")
                size = bytes_of(limit) if limit else evidence.shm_size
                evidence = replace(evidence, shm_volume=name, shm_size=size)
    return evidence


def _event(evidence: Evidence, each: Mapping[str, Any]) -> Evidence:
    words = str(each.get("message") or each.get("note") or "")
    return replace(
        evidence,
        target=KUBERNETES.name,
        events=(*evidence.events, RunEvent(str(each.get("reason") or ""), words)),
    )


def _numbers(evidence: Evidence, each: Mapping[str, Any]) -> Evidence:
    """Return evidence with numbers that somebody wrote down: memory_limit and sizeLimit of a pod, a target."""
    limit, size = each.get("memory_limit"), each.get("sizeLimit")
    return replace(
        evidence,
        memory=bytes_of(limit) if limit else evidence.memory,
        shm_size=bytes_of(size) if size else evidence.shm_size,
        target=str(each["target"])
        if each.get("target") in {"docker", "compose", "kubernetes", "local"}
        else (KUBERNETES.name if size else evidence.target),
    )


def _told(value: Mapping[str, Any], key: str, unknown: bool | None) -> bool | None:
    return value[key] if isinstance(value.get(key), bool) else unknown


def _mapping(value: Any, key: str) -> Mapping[str, Any]:
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _number(value: Any) -> int:
    try:
        return int(value or 0)
    except (TypeError, ValueError):
        return 0
