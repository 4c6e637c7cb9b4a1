"""Memory, CPUs and GPUs of a Compose service, from its own keys and from `deploy`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from trainlaunch.formats.compose.layers import MappingLayers, items_of
from trainlaunch.formats.compose.process import read_environment
from trainlaunch.formats.compose.values import ignored_size, known, plain, read_cpus, read_size, read_string, unknown
from trainlaunch.formats.workload import GpuRequest, Known, Unknown, Value, stated
from trainlaunch.gpu_names import ALL_GPUS, NVIDIA_GPU
from trainlaunch.yamltree.tolerant import Mapping, Node, Scalar, Sequence

T = TypeVar("T")

_CDI_GPU = f"{NVIDIA_GPU}="
_COUNTED = frozenset({"count", "device_ids"})


class ServiceResources(NamedTuple):
    """What a service may use; `rest` has what else its keys say, by key, and nothing of those that are read whole."""

    memory: Value[int]
    cpus: Value[int]
    gpus: Value[GpuRequest]
    devices: dict[str, str]
    rest: dict[str, object]


def read_resources(service: MappingLayers) -> ServiceResources:
    """Return the resources. What Compose drops, and what stands beside the place that wins, is in the rest."""
    rest = {key: service.value(key) for key in ("mem_limit", "cpus", "deploy", "gpus", "runtime", "devices")}
    resources = service.below("deploy").below("resources")
    limits = resources.below("limits")
    memory = _first(_memory, (service, "mem_limit", rest), (limits, "memory", _at(rest, "limits")))
    cpus = _first(_cpus, (service, "cpus", rest), (limits, "cpus", _at(rest, "limits")))
    gpus = _reserved(resources.below("reservations").stack("devices"), _at(rest, "reservations"))
    nodes = [each for node in reversed(service.stack("devices")) for each in items_of(node)]
    if all(isinstance(each, Scalar) for each in nodes):
        rest["devices"] = None
    devices = " ".join(str(plain(each)) for each in nodes if isinstance(each, Scalar))
    if gpus is None:
        gpus = _short_form(service.get("gpus")) or _cdi(nodes) or _by_runtime(service)
    kept = {key: value for key, value in rest.items() if value is not None}
    return ServiceResources(memory, cpus, gpus, {"nodes": devices} if devices else {}, kept)


def _at(rest: dict[str, Any], part: str) -> dict[str, Any]:
    """Return the mapping of `deploy.resources` in the rest, an empty one where there is none."""
    inner: object = rest
    for key in ("deploy", "resources", part):
        inner = inner.get(key) if isinstance(inner, dict) else None
    return inner if isinstance(inner, dict) else {}


def _first(read: Callable[[Node], Value[T]], *places: tuple[MappingLayers, str, dict[str, Any]]) -> Value[T]:
    """Return the first value that is in effect, and take it out of the rest."""
    for layers, key, rest in places:
        node = layers.get(key)
        value = None if node is None else read(node)
        if value is not None:
            rest.pop(key, None)
            return value
    return None


def _memory(node: Node) -> Value[int]:
    return read_size(node) if ignored_size(node) is None else None


def _cpus(node: Node) -> Value[int]:
    cpus = read_cpus(node)
    return None if stated(cpus) == 0 else cpus


def _reserved(stack: tuple[Node, ...], rest: dict[str, Any]) -> Value[GpuRequest]:
    """Return the first reserved devices that are GPUs; one plain request that counts or names them leaves no rest."""
    entries = [each for node in reversed(stack) for each in items_of(node)]
    kept = rest.get("devices")
    for index, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            continue
        said = plain(entry)
        if not isinstance(said, dict) or not isinstance(kept, list) or not _is_gpu(said):
            continue
        kept[index] = {key: value for key, value in said.items() if key not in _COUNTED}
        if kept == [{"driver": "nvidia", "capabilities": ["gpu"]}] and said.keys() & _COUNTED:
            rest.pop("devices")
        return _request(entry)
    return None


def _is_gpu(said: dict[str, Any]) -> bool:
    capabilities = said.get("capabilities")
    return said.get("driver") == "nvidia" or (isinstance(capabilities, list) and "gpu" in capabilities)


def _request(entry: Mapping) -> Value[GpuRequest]:
    layers = MappingLayers((entry,))
    count, ids = layers.get("count"), layers.get("device_ids")
    names = [read_string(each) for each in items_of(ids)]
    number = read_string(count) if count is not None else None
    if isinstance(number, Unknown) or any(isinstance(each, Unknown) for each in names):
        return unknown(entry)
    listed = tuple(each.value for each in names if isinstance(each, Known))
    if layers.value("driver") == "cdi" and all(each.startswith(_CDI_GPU) for each in listed):
        listed = tuple(each.removeprefix(_CDI_GPU) for each in listed)
    every = listed == (ALL_GPUS,) or (number is None and not listed)
    text = "0" if number is None else number.value.lower()
    if text in (ALL_GPUS, "-1"):
        every, text = True, "0"
    if not text.isdecimal() or len(text) > 9:
        return unknown(entry)
    return known(GpuRequest(int(text), () if listed == (ALL_GPUS,) else listed, every), entry)


def _short_form(node: Node | None) -> Value[GpuRequest]:
    """Return what the key `gpus` asks for: the word all, or a list of requests."""
    if isinstance(node, Sequence):
        first = next((each for each in node.items if isinstance(each, Mapping)), None)
        return None if first is None else _request(first)
    if node is None:
        return None
    text = read_string(node)
    return known(GpuRequest(all=True), node) if stated(text) == ALL_GPUS else unknown(node)


def _cdi(nodes: list[Node]) -> Value[GpuRequest]:
    """Return the GPUs that are named as devices of NVIDIA's: `nvidia.com/gpu=all`."""
    named = [(str(plain(each)), each) for each in nodes if isinstance(each, Scalar)]
    found = [(text.removeprefix(_CDI_GPU), each) for text, each in named if text.startswith(_CDI_GPU)]
    if not found:
        return None
    ids = tuple(text for text, _ in found)
    return known(GpuRequest(all=True) if ALL_GPUS in ids else GpuRequest(ids=ids), found[0][1])


def _by_runtime(service: MappingLayers) -> Value[GpuRequest]:
    """Return the GPUs of `runtime: nvidia`; its variable names them, and an image may set that too."""
    node = service.get("runtime")
    if node is None or stated(read_string(node)) != "nvidia":
        return None
    visible = read_environment(service).env.get("NVIDIA_VISIBLE_DEVICES")
    if not isinstance(visible, Known):
        return visible or unknown(node)
    if visible.value in ("", "void", "none"):
        return None
    ids = tuple(visible.value.split(","))
    request = GpuRequest(all=True) if ids == (ALL_GPUS,) else GpuRequest(ids=ids)
    return Known(request, visible.text, visible.span)
