"""What the containers and volumes of pods take, as demands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from launcher.formats.docker.flags import takes_shm
from launcher.formats.gpus import CDI_ANNOTATION, GPU_RESOURCE, gives_gpus, gives_gpus_at, may_give_gpus
from launcher.formats.quantities import parse_milli_quantity, parse_quantity, quantity_text
from launcher.policy.demands import (
    CAPABILITY,
    CLAIM,
    CPUS,
    EXTENDED,
    GPUS,
    IMAGE,
    MEMORY,
    PRIVILEGE,
    SHM_SIZE,
    TOKEN,
    Demand,
    host_path,
)
from launcher.verify.compose_demands import listed, mapping

_READ: dict[str, tuple[str, Callable[[str], int | None]]] = {
    MEMORY: ("memory", parse_quantity),
    CPUS: ("cpu", parse_milli_quantity),
}
# Volumes that are no storage of the cluster; hostPath, image and persistentVolumeClaim have a list of their own.
_OF_THE_POD = frozenset(
    (
        "name",
        "emptyDir",
        "configMap",
        "secret",
        "downwardAPI",
        "projected",
        "hostPath",
        "image",
        "persistentVolumeClaim",
    )
)


def container_demands(container: dict[str, Any], pod: dict[str, Any], *, added: bool) -> Iterator[Demand]:
    """Yield what a container takes. The plan decides the sizes of one that isn't `added`."""
    if added:
        yield from _sizes(container)
        yield from _shm(container, pod)
    if "image" in container:
        yield Demand(IMAGE, "image", str(container["image"]), str(container["image"]))
    yield from (Demand(GPUS, "the devices", each, each) for each in _gpus(container))
    context = mapping(container.get("securityContext"))
    if "privileged" in context:
        yield Demand(PRIVILEGE, "privileged", "privileged", str(context["privileged"]))
    for each in listed(mapping(context.get("capabilities")).get("add")):
        yield Demand(CAPABILITY, "the capabilities", str(each), str(each))
    resources = mapping(container.get("resources"))
    for name in {**mapping(resources.get("requests")), **mapping(resources.get("limits"))}:
        if not GPU_RESOURCE.fullmatch(name):
            yield Demand(EXTENDED, f"the resource {name}", name, name)


def _sizes(container: dict[str, Any]) -> Iterator[Demand]:
    """Yield the limits, of which 0 is none, and the requests: a node gives at least what is asked for."""
    resources = mapping(container.get("resources"))
    limits, requests = mapping(resources.get("limits")), mapping(resources.get("requests"))
    for kind, (key, read) in _READ.items():
        said = "no limit" if key not in limits else str(limits[key])
        yield Demand(kind, kind, quantity(limits.get(key), read), said)
        if key in requests:
            yield Demand(kind, f"the requested {kind}", quantity(requests[key], read) or 0, str(requests[key]))


def quantity(value: object, read: Callable[[str], int | None] = parse_quantity) -> int | None:
    """Return a quantity above 0; None for what is none, or no limit."""
    text = quantity_text(value)
    number = None if text is None else read(text)
    return number if number and number > 0 else None


def _shm(container: dict[str, Any], pod: dict[str, Any]) -> Iterator[Demand]:
    """Yield the size of each volume in memory that lies in place of /dev/shm."""
    volumes = {each.get("name"): mapping(each.get("emptyDir")) for each in map(mapping, listed(pod.get("volumes")))}
    for mount in map(mapping, listed(container.get("volumeMounts"))):
        volume = volumes.get(mount.get("name"), {})
        if volume.get("medium") == "Memory" and takes_shm(str(mount.get("mountPath"))):
            size = volume.get("sizeLimit")
            yield Demand(SHM_SIZE, "/dev/shm", quantity(size), "no size" if size is None else str(size))


def _gpus(container: dict[str, Any]) -> Iterator[str]:
    """Yield what gives a container GPUs beside resources.gpus."""
    if mapping(container.get("securityContext")).get("privileged") is True:
        yield "privileged: true"
    for each in map(mapping, listed(container.get("env"))):
        value = None if "valueFrom" in each else str(each.get("value", ""))
        if gives_gpus(str(each.get("name")), value):
            yield f"{each.get('name')}={value}"
    for each in map(mapping, listed(container.get("envFrom"))):
        prefix = str(each.get("prefix") or "")
        if may_give_gpus(prefix):
            yield f"envFrom with {prefix or 'no'} prefix, which may have NVIDIA_VISIBLE_DEVICES"
    resources = mapping(container.get("resources"))
    if resources.get("claims"):
        yield f"claims: {resources['claims']}"
    stated = {**mapping(resources.get("requests")), **mapping(resources.get("limits"))}
    yield from (f"{name}: {stated[name]}" for name in stated if GPU_RESOURCE.fullmatch(name))
    mounts = map(mapping, listed(container.get("volumeMounts")))
    yield from (f"the mount {each['mountPath']}" for each in mounts if gives_gpus_at(str(each.get("mountPath"))))


def pod_demands(pod: dict[str, Any]) -> Iterator[Demand]:
    """Yield what a pod's spec takes from its node and its cluster, whichever of its containers mounts it."""
    for volume in map(mapping, listed(pod.get("volumes"))):
        yield from _volume(volume)
    for each in listed(pod.get("resourceClaims")):
        said = f"resourceClaims: {mapping(each).get('name')}"
        yield Demand(GPUS, "the devices", said, said)
    if "runtimeClassName" in pod:
        said = f"runtimeClassName: {pod['runtimeClassName']}"
        yield Demand(GPUS, "the devices", said, said)


def _volume(volume: dict[str, Any]) -> Iterator[Demand]:
    name = str(volume.get("name"))
    if "hostPath" in volume:
        yield host_path("the folders of the host", str(mapping(volume["hostPath"]).get("path")), "/")
    if "persistentVolumeClaim" in volume:
        claim = str(mapping(volume["persistentVolumeClaim"]).get("claimName"))
        yield Demand(CLAIM, "the claims", claim, claim)
    if "image" in volume:
        image = str(mapping(volume["image"]).get("reference"))
        yield Demand(IMAGE, "image of a volume", image, image)
    for kind in volume.keys() - _OF_THE_POD:
        yield Demand(CLAIM, "the claims", f"{kind} {name}", f"the {kind} volume {name}, which names no claim")
    for each in map(mapping, listed(mapping(volume.get("projected")).get("sources"))):
        if "serviceAccountToken" in each:
            yield Demand(TOKEN, "the tokens of the API", name, f"volume {name}")


def annotation_demands(value: object) -> Iterator[Demand]:
    """Yield each annotation of an object or its pods that names devices."""
    for key, below in value.items() if isinstance(value, dict) else enumerate(listed(value)):
        if key == "annotations":
            found = [f"annotation {each}" for each in mapping(below) if str(each).startswith(CDI_ANNOTATION)]
            yield from (Demand(GPUS, "the devices", each, each) for each in found)
        elif isinstance(below, (dict, list)):
            yield from annotation_demands(below)
