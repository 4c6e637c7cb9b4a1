"""One container of a pod, as a Workload, with its limits and requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from trainlaunch.formats.gpus import is_gpu_resource
from trainlaunch.formats.kubernetes.environment import ContainerEnvironment, read_environment, refuses, words
from trainlaunch.formats.kubernetes.fields import Fields, is_null, quantity_of, unknown
from trainlaunch.formats.kubernetes.volumes import Volume, read_mounts
from trainlaunch.formats.workload import GpuRequest, Known, Value, Workload
from trainlaunch.yamltree.scalars import value_of
from trainlaunch.yamltree.tolerant import Node, Scalar, Sequence

_TIMES = {"interval": "periodSeconds", "timeout": "timeoutSeconds", "retries": "failureThreshold"}


class PodValues(NamedTuple):
    """What a pod says for those of its containers that don't say it themselves."""

    uid: Node | None
    gid: Node | None
    groups: tuple[str, ...]
    stop_timeout: Value[int]
    memory: Value[int]
    cpus: Value[int]
    host_ipc: Value[bool]
    volumes: Mapping[str, Volume]


def read_container(node: Node, pod: PodValues, *, final: bool) -> tuple[Workload, frozenset[str]]:
    """Return what a container and its pod say of it, and the names of the volumes that it mounts.

    `rest` has what else the container says itself; `place`, `name` and `labels` are left open.
    `memory` is the container's limit, or the pod's; so are `cpus`, or the request by which it is scheduled.
    """
    fields = Fields(node, final=final)
    name = fields.peek("name")
    mounts = read_mounts(fields, pod.volumes, host_ipc=pod.host_ipc, final=final)
    env = read_environment(fields, final=final)
    resources = read_resources(fields.within("resources"))
    security, probe = fields.within("securityContext"), fields.within("readinessProbe")
    workload = Workload(
        "kubernetes",
        "",
        (name if isinstance(name, Scalar) else node).span,
        image=fields.pop_str("image"),
        pull_policy=fields.pop_str("imagePullPolicy"),
        entrypoint=_words(fields, "command", env, final=final),
        command=_words(fields, "args", env, final=final),
        env=env.values,
        secrets=env.secrets,
        shm=mounts.shm,
        memory=resources.memory or pod.memory,
        cpus=resources.cpu_limit or pod.cpus or resources.cpu_request,
        gpus=resources.gpus,
        devices=resources.devices,
        mounts=mounts.points,
        health=_health(probe, env, final=final),
        health_times={key: value for key, word in _TIMES.items() if (value := probe.pop_int(word)) is not None},
        user=_user(security.take("runAsUser") or pod.uid, security.take("runAsGroup") or pod.gid),
        groups=pod.groups,
        working_dir=fields.pop_str("workingDir"),
        read_only=security.pop_bool("readOnlyRootFilesystem"),
        stop_timeout=pod.stop_timeout,
    )
    return workload._replace(rest=_rest(fields, env, resources)), mounts.names


def _words(fields: Fields, key: str, env: ContainerEnvironment, *, final: bool) -> Value[tuple[str, ...]]:
    node = fields.take(key)
    if node is not None and refuses(node, final=final):
        fields.refuse(key, node.raw)
    return words(node, env, final=final)


def _rest(fields: Fields, env: ContainerEnvironment, resources: ContainerResources) -> dict[str, object]:
    others = {f"container.env.{key}": value for key, value in env.others.items()}
    return {**dict(fields.rest("container")), **env.refused, **others, "requests are limits": resources.unequal or True}


def _health(probe: Fields, env: ContainerEnvironment, *, final: bool) -> Value[str]:
    """Take the text that a readiness probe has a shell run; any other probe stays in the rest."""
    check = probe.within("exec")
    command = check.peek("command")
    known: dict[str, Value[str]] = {name: value for name, value in env.values.items() if isinstance(value, Known)}
    argv = words(command, ContainerEnvironment(known, {}, {}, False, {}), final=final)
    if not isinstance(command, Sequence) or not isinstance(argv, Known):
        return None
    if argv.value[:2] != ("/bin/sh", "-c") or len(argv.value) != 3:
        return None
    check.take("command")
    return Known(argv.value[2], command.items[2].raw, command.items[2].span)


def _user(uid: Node | None, gid: Node | None) -> Value[str]:
    """Return `UID:GID`, as docker has it, of whichever are set."""
    nodes = [each for each in (uid, gid) if each is not None]
    if not nodes:
        return None
    numbers: list[int | None] = []
    for each in nodes:
        value = value_of(each, yaml11=True) if isinstance(each, Scalar) else None
        if type(value) is not int:
            return unknown(each)
        numbers.append(value)
    start, end = min(each.start for each in nodes), max(each.end for each in nodes)
    source = nodes[0].source
    words = ("" if uid is None else str(numbers[0]), "" if gid is None else f":{numbers[-1]}")
    return Known("".join(words), source.text[start:end], source.span(start, end))


class ContainerResources(NamedTuple):
    """What a container may use: bytes, thousandths of a CPU, GPUs, and the other limits by name in whole units.

    `unequal` are the names of those whose request is not set to be the limit, and of what is neither.
    """

    memory: Value[int]
    cpu_limit: Value[int]
    cpu_request: Value[int]
    gpus: Value[GpuRequest]
    devices: dict[str, str]
    unequal: tuple[str, ...]


def read_resources(resources: Fields) -> ContainerResources:
    """Take the limits, and those requests that are equal to them."""
    limits, requests = resources.within("limits"), resources.within("requests")
    strange = [each for each in resources.names() if each not in {"requests", "limits", "claims"}]
    names = dict.fromkeys((*requests.names(), *limits.names()))
    unequal = (*strange, *(each for each in names if not _same(limits.peek(each), requests.peek(each))))
    memory, cpu_limit = limits.quantity("memory"), limits.quantity("cpu", milli=True)
    for name in names:
        if name not in unequal:
            requests.take(name)
    cpu_request = None if cpu_limit is not None else requests.quantity("cpu", milli=True)
    gpus, devices = _devices(limits)
    return ContainerResources(memory, cpu_limit, cpu_request, gpus, devices, unequal)


def _devices(limits: Fields) -> tuple[Value[GpuRequest], dict[str, str]]:
    """Take the GPUs, those of the first name that is one, and the other limits."""
    gpus: Value[GpuRequest] = None
    devices: dict[str, str] = {}
    for name in limits.names():
        node = limits.peek(name)
        count = quantity_of(node)
        if node is None or count is None:
            continue
        limits.take(name)
        if gpus is not None or not is_gpu_resource(name):
            devices[name] = str(count.value) if isinstance(count, Known) else node.raw
        elif isinstance(count, Known):
            gpus = Known(GpuRequest(count.value, resource=name), count.text, count.span)
        else:
            gpus = count
    return gpus, devices


def _same(limit: Node | None, request: Node | None) -> bool:
    if not isinstance(limit, Scalar) or not isinstance(request, Scalar) or is_null(limit):
        return False
    one, two = quantity_of(limit, milli=True), quantity_of(request, milli=True)
    if isinstance(one, Known) and isinstance(two, Known):
        return one.value == two.value
    return value_of(limit, yaml11=True) == value_of(request, yaml11=True)
