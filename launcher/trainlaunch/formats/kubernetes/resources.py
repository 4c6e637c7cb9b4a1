"""Limits and requests of a container."""

from __future__ import annotations

from typing import NamedTuple

from trainlaunch.formats.gpus import GPU_RESOURCE
from trainlaunch.formats.kubernetes.fields import Fields, is_null, quantity_of
from trainlaunch.formats.workload import GpuRequest, Known, Value
from trainlaunch.yamltree.documents import Node, Scalar
from trainlaunch.yamltree.scalars import value_of


class Resources(NamedTuple):
    """What a container may use: bytes, thousandths of a CPU, GPUs, and the other limits by name in whole units.

    `unequal` are the names of those whose request is not stated to be the limit, and of what is neither.
    """

    memory: Value[int]
    cpu_limit: Value[int]
    cpu_request: Value[int]
    gpus: Value[GpuRequest]
    devices: dict[str, str]
    unequal: tuple[str, ...]


def read_resources(resources: Fields) -> Resources:
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
    return Resources(memory, cpu_limit, cpu_request, gpus, devices, unequal)


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
        if gpus is not None or not GPU_RESOURCE.fullmatch(name):
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
