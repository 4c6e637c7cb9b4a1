"""Reads a Pod or a Job back: YAML, the kubelet's expansion of `$(VAR)`, then what each field does to the container."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from launcher.verify.readback import ReadBack, ReadMount, flat, read_cpus, read_size, read_yaml

_DOLLAR = re.compile(r"\$(?:(\$)|\(([^)]*)\))")


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Return `text` as the kubelet passes it on: `$$` is one dollar anywhere, `$(NAME)` its value if it has one.

    Values are put in as they are and not expanded again.
    """
    return _DOLLAR.sub(lambda match: "$" if match[1] else variables.get(match[2], match[0]), text)


def reread_kubernetes(text: str) -> ReadBack:
    """Return what the manifest says of its first container; every other container must see the same /dev/shm."""
    document: dict[str, Any] = read_yaml(text)
    metadata = document.pop("metadata", {})
    spec = document.get("spec", {})
    pod: dict[str, Any] = spec.get("template", {}).pop("spec", {}) if "template" in spec else document.pop("spec", {})
    volumes = {each.pop("name"): each for each in pod.pop("volumes", [])}
    containers = [*pod.pop("initContainers", []), *pod.pop("containers", [])] or [{}]
    shm_sizes = {_shm_size(each, volumes) for each in containers}
    container, *others = containers
    env, secrets = _environment(container.pop("env", []))
    health = container.get("readinessProbe", {})
    probe = health.get("exec", {}).pop("command", [])
    resources = container.pop("resources", {})
    security = pod.get("securityContext", {})
    return ReadBack(
        name=metadata.pop("name", None),
        image=container.pop("image", None),
        pull=container.pop("imagePullPolicy", None),
        process=tuple(expanded(word, env) for word in (*container.pop("command", ()), *container.pop("args", ()))),
        env=env,
        secrets=secrets,
        labels=metadata.pop("labels", {}),
        shm_size=shm_sizes.pop() if len(shm_sizes) == 1 else None,
        memory=read_size(_limit(resources, "memory")),
        cpus=read_cpus(_limit(resources, "cpu")),
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
        rest=_rest(document, resources, metadata=metadata, pod=pod, container=container, others=others),
    )


def _rest(document: dict[str, Any], resources: dict[str, Any], **parts: object) -> dict[str, object]:
    """Return what the fields above left of the manifest, leaf by leaf."""
    as_limited = resources.get("requests") == resources.get("limits")
    return dict(flat(document | parts | {"requests are limits": as_limited}))


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
    """Return variables with their values, each expanded with those before it, and secrets with `name/key`."""
    env: dict[str, str] = {}
    secrets: dict[str, str] = {}
    for entry in entries:
        if "value" in entry:
            env[entry["name"]] = expanded(entry["value"], env)
        else:
            reference = entry.get("valueFrom", {}).get("secretKeyRef", {})
            secrets[entry["name"]] = f"{reference.get('name')}/{reference.get('key')}"
    return env, secrets


def _health_times(probe: dict[str, Any]) -> dict[str, int]:
    names = {"interval": "periodSeconds", "timeout": "timeoutSeconds", "retries": "failureThreshold"}
    return {key: probe.pop(field) for key, field in names.items() if field in probe}


def _mount(mount: dict[str, Any], volumes: dict[str, Any]) -> ReadMount:
    target, read_only = mount.get("mountPath", ""), mount.get("readOnly", False) is True
    volume = volumes.get(mount.get("name", ""), {})
    if set(mount) - {"name", "mountPath", "readOnly"}:
        return ReadMount(f"{sorted(mount)}", None, target, read_only)
    if "persistentVolumeClaim" in volume:
        claim = volume["persistentVolumeClaim"]
        return ReadMount("pvc", claim.get("claimName"), target, read_only and claim.get("readOnly") is True)
    if "configMap" in volume:
        return ReadMount("config", volume["configMap"].get("name"), target, read_only)
    empty = volume.get("emptyDir")
    if empty is None:
        return ReadMount("nothing", None, target, read_only)
    kind = "tmpfs" if empty.get("medium") == "Memory" else "scratch"
    return ReadMount(kind, None, target, read_only, read_size(empty.get("sizeLimit")))
