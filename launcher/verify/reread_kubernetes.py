"""Reads a manifest back: YAML, the kubelet's expansion of `$(VAR)`, then what each field does to the container."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from launcher.job.reserved import KUEUE_QUEUE_LABEL
from launcher.verify.plain import ReadMount
from launcher.verify.readback import ReadBack, flat, read_cpus, read_documents, read_size

_DOLLAR = re.compile(r"\$(?:(\$)|\(([^)]*)\))")
_POD_IP = "status.podIP"
_IN_JOB_SET = ("spec", "replicatedJobs", "*", "template", "spec", "template")
_TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "Pod": (),
    "Job": ("spec", "template"),
    "JobSet": _IN_JOB_SET,
    "TrainingRuntime": ("spec", "template", *_IN_JOB_SET),
    "PyTorchJob": ("spec", "pytorchReplicaSpecs", "*", "template"),
}
_VOLUMES = {
    "persistentVolumeClaim": {"claimName", "readOnly"},
    "configMap": {"name"},
    "secret": {"secretName", "defaultMode", "items"},
    "emptyDir": {"medium", "sizeLimit"},
}
_OWNER_AND_GROUP_READ = 0o440


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Return `text` as the kubelet passes it on: `$$` is one dollar anywhere, `$(NAME)` its value if it has one.

    Values are put in as they are and not expanded again.
    """
    return _DOLLAR.sub(lambda match: "$" if match[1] else variables.get(match[2], match[0]), text)


def reread_kubernetes(text: str) -> ReadBack:
    """Return what the manifest says of the first container of its pods.

    The last document is the one that runs the job. All its pod templates must be the same, and every other container
    must see the same /dev/shm.
    """
    *before, main = read_documents(text)
    pods = [place.pop("spec", {}) for document in (*before, main) for place in _pod_places(document)] or [{}]
    metadata = main.pop("metadata", {})
    pod: dict[str, Any] = pods[0]
    alike = all(each == pod for each in pods)
    number = len(pods) if alike else "they differ"
    containers = [*pod.pop("initContainers", []), *pod.pop("containers", [])] or [{}]
    volumes = _volumes(pod, containers)
    shm_sizes = {_shm_size(each, volumes) for each in containers}
    container, *others = containers
    parts = {"before": before, "metadata": metadata, "pods": number, "pod": pod, "container": container}
    rest = main | parts | {"others": others}
    read = _read_container(container, pod, volumes=volumes)
    labels = metadata.pop("labels", {})
    return read._replace(
        name=metadata.pop("name", None),
        labels={key: value for key, value in labels.items() if key != KUEUE_QUEUE_LABEL},
        shm_size=shm_sizes.pop() if alike and len(shm_sizes) == 1 else None,
        rest={**dict(flat(rest | {"queue": labels.get(KUEUE_QUEUE_LABEL, [])})), **read.rest},
    )


def _pod_places(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what holds a pod's spec in a document: each pod template, or a Pod itself."""
    places: list[Any] = [document]
    for key in _TEMPLATES.get(str(document.get("kind")), ("",)):
        if key == "*":
            places = [each for place in places for each in (place.values() if isinstance(place, dict) else place)]
        else:
            places = [place[key] for place in places if key in place]
    yield from places


def _read_container(container: dict[str, Any], pod: dict[str, Any], *, volumes: dict[str, Any]) -> ReadBack:
    """Return what a container and its pod say, taken out of them; what they leave unsaid is in neither."""
    env, secrets = _environment(container.pop("env", []))
    health = container.get("readinessProbe", {})
    probe = health.get("exec", {}).pop("command", [])
    resources = container.pop("resources", {})
    security = pod.get("securityContext", {})
    unlimited = resources.get("requests", {}).get("cpu")
    return ReadBack(
        name=None,
        image=container.pop("image", None),
        pull=container.pop("imagePullPolicy", None),
        process=tuple(expanded(word, env) for word in (*container.pop("command", ()), *container.pop("args", ()))),
        env=env,
        secrets=secrets,
        labels={},
        shm_size=None,
        memory=read_size(_limit(resources, "memory")),
        cpus=read_cpus(_limit(resources, "cpu") or (unlimited if isinstance(unlimited, str) else None)),
        devices=_devices(resources),
        mounts=tuple(_mount(each, volumes) for each in container.pop("volumeMounts", [])),
        health=expanded(probe[2], env) if probe[:2] == ["/bin/sh", "-c"] and len(probe) == 3 else None,
        health_times=_health_times(health),
        user=f"{security.pop('runAsUser', '')}:{security.pop('runAsGroup', '')}",
        groups=tuple(str(each) for each in security.pop("supplementalGroups", ())),
        working_dir=container.pop("workingDir", None),
        read_only=container.get("securityContext", {}).pop("readOnlyRootFilesystem", False),
        stop_signal=None,
        stop_timeout=pod.pop("terminationGracePeriodSeconds", None),
        ulimits={},
        rest={"requests are limits": _unequal(resources) or True},
    )


def _unequal(resources: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of resources whose request is not their limit."""
    requests, limits = resources.get("requests", {}), resources.get("limits", {})
    strange = [each for each in resources if each not in {"requests", "limits"}]
    return (*strange, *(each for each in {**requests, **limits} if requests.get(each) != limits.get(each)))


def _volumes(pod: dict[str, Any], containers: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the pod's volumes by name; those that no container mounts, or that share a name, stay in the pod."""
    listed = pod.pop("volumes", [])
    volumes = {each.pop("name"): each for each in listed}
    mounted = {mount["name"] for each in containers for mount in each.get("volumeMounts", [])}
    idle = [name for name in volumes if name not in mounted]
    if idle or len(volumes) < len(listed):
        pod["volumes"] = [*idle, repr(listed)]
    return volumes


def _limit(resources: dict[str, Any], name: str) -> str | None:
    value = resources.get("limits", {}).get(name)
    return value if isinstance(value, str) else None


def _devices(resources: dict[str, Any]) -> dict[str, str]:
    """Return the other limits by name; that of the disk in bytes."""
    limits = {name: value for name, value in resources.get("limits", {}).items() if name not in {"memory", "cpu"}}
    disk = "ephemeral-storage"
    return limits | ({disk: str(read_size(limits[disk]))} if disk in limits else {})


def _shm_size(container: dict[str, Any], volumes: dict[str, Any]) -> int | None:
    """Return the size of a container's /dev/shm; None unless it has exactly one, in memory, with a size, writable."""
    mounts = [each for each in container.get("volumeMounts", []) if os.path.normpath(each["mountPath"]) == "/dev/shm"]
    if len(mounts) != 1 or set(mounts[0]) != {"name", "mountPath"}:
        return None
    volume = volumes.get(mounts[0]["name"], {}).get("emptyDir", {})
    return read_size(volume.get("sizeLimit")) if volume.get("medium") == "Memory" else None


def _environment(entries: list[dict[str, Any]]) -> tuple[dict[str, str], dict[str, str]]:
    """Return variables with their values, each expanded with those before it, and the sources of all others."""
    env: dict[str, str] = {}
    secrets: dict[str, str] = {}
    for entry in entries:
        name, value, reference = entry["name"], entry.get("value"), entry.get("valueFrom", {})
        if name in env or name in secrets:
            env[f"{name} twice"] = repr(entry)
        elif set(entry) == {"name", "value"} and isinstance(value, str):
            env[name] = expanded(value, env)
        elif entry == {"name": name, "valueFrom": {"fieldRef": {"fieldPath": _POD_IP}}}:
            secrets[name] = f"field {_POD_IP}"
        elif set(entry) == {"name", "valueFrom"} and set(reference) == {"secretKeyRef"}:
            secrets[name] = _secret_key(reference["secretKeyRef"])
        else:
            env[name] = repr(entry)
    return env, secrets


def _secret_key(reference: dict[str, Any]) -> str:
    """Return `name/key`; an optional reference, which would start the job without its secret, is shown whole."""
    return f"{reference['name']}/{reference['key']}" if set(reference) == {"name", "key"} else repr(reference)


def _health_times(probe: dict[str, Any]) -> dict[str, int]:
    names = {"interval": "periodSeconds", "timeout": "timeoutSeconds", "retries": "failureThreshold"}
    return {key: probe.pop(field) for key, field in names.items() if field in probe}


def _mount(mount: dict[str, Any], volumes: dict[str, Any]) -> ReadMount:
    target, read_only = mount.get("mountPath", ""), mount.get("readOnly", False) is True
    volume = volumes.get(mount.get("name", ""), {})
    kind = next(iter(volume), "nothing")
    source: dict[str, Any] = volume.get(kind, {})
    if (
        len(volume) != 1
        or not set(source) <= _VOLUMES.get(kind, set())
        or set(mount) - {"name", "mountPath", "readOnly", *({"subPath"} if kind == "secret" else ())}
    ):
        return ReadMount(f"{sorted(mount)} of {volume}", None, target, read_only)
    if kind == "persistentVolumeClaim":
        return ReadMount("pvc", source.get("claimName"), target, read_only and source.get("readOnly") is True)
    if kind == "configMap":
        return ReadMount("config", source.get("name"), target, read_only)
    if kind == "secret":
        return ReadMount(*_secret_file(mount, source), target, read_only)
    in_memory = source.get("medium") == "Memory"
    return ReadMount("tmpfs" if in_memory else "scratch", None, target, read_only, read_size(source.get("sizeLimit")))


def _secret_file(mount: dict[str, Any], source: dict[str, Any]) -> tuple[str, str]:
    """Return the type and `name/key` of one key as one file, readable by its owner and the pod's group."""
    items = source.get("items", [])
    key = items[0].get("key") if len(items) == 1 and items[0] == {"key": items[0].get("key"), "path": "value"} else None
    if key is None or mount.get("subPath") != "value" or source.get("defaultMode") != _OWNER_AND_GROUP_READ:
        return f"secret of {source} at {mount}", ""
    return "secret", f"{source.get('secretName')}/{key}"
