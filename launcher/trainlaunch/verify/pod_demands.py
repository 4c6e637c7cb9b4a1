"""What the containers and volumes of pods take, as demands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from trainlaunch.formats.docker.flags import takes_shm
from trainlaunch.formats.gpus import GPU_RESOURCE, gives_gpus, gives_gpus_at, may_give_gpus
from trainlaunch.formats.quantities import bytes_of, parse_milli_quantity, parse_quantity, quantity_text
from trainlaunch.policy.annotation_demands import annotation_demands, label_demands
from trainlaunch.policy.demands import (
    CLAIM,
    CPUS,
    GPUS,
    IMAGE,
    MEMORY,
    POD_TOKENS,
    POD_VOLUMES,
    PRIORITY,
    QUEUE,
    SHM_SIZE,
    TOKEN,
    Demand,
    capability,
    extended,
    host_path,
    privilege,
)
from trainlaunch.verify.stated_values import listed, mapping

_READ: dict[str, tuple[str, Callable[[str], int | None]]] = {
    MEMORY: ("memory", parse_quantity),
    CPUS: ("cpu", parse_milli_quantity),
}
# Where a scheduler's own policy names what the pod's fields have too.
_SCHEDULING = (("priorityClass", PRIORITY), ("queue", QUEUE))


def container_demands(container: dict[str, Any], pod: dict[str, Any], *, added: bool) -> Iterator[Demand]:
    """Yield what a container takes. The plan decides the sizes of one that isn't `added`."""
    if added:
        yield from _sizes(container)
        yield from _shm(container, pod)
    if "image" in container:
        yield Demand(IMAGE, "image", str(container["image"]), str(container["image"]))
    yield from (Demand(GPUS, "the devices", each, each) for each in _gpus(container))
    context = mapping(container.get("securityContext"))
    yield from privilege("privileged", "privileged", context.get("privileged"))
    for each in listed(mapping(context.get("capabilities")).get("add")):
        yield capability("the capabilities", str(each))
    for name in _resources(container):
        yield from extended(f"the resource {name}", name, name)


def _resources(container: dict[str, Any]) -> dict[str, Any]:
    """Return the limits of a container, and what it requests without a limit."""
    resources = mapping(container.get("resources"))
    return {**mapping(resources.get("requests")), **mapping(resources.get("limits"))}


def _sizes(container: dict[str, Any]) -> Iterator[Demand]:
    """Yield the limits, of which 0 is none, and the requests: a node gives at least what is asked for.

    Huge pages are memory that no limit of memory counts.
    """
    resources = mapping(container.get("resources"))
    limits, requests = mapping(resources.get("limits")), mapping(resources.get("requests"))
    pages = {name: each for name, each in _resources(container).items() if name.startswith("hugepages-")}
    for kind, (key, read) in _READ.items():
        limit, beside = _quantity(limits.get(key), read), pages if kind == MEMORY else {}
        stated = "no limit" if key not in limits else str(limits[key])
        said = " and ".join((stated, *(f"{name} {each}" for name, each in beside.items())))
        yield Demand(kind, kind, None if limit is None else limit + sum(map(bytes_of, beside.values())), said)
        if key in requests:
            yield Demand(kind, f"the requested {kind}", _quantity(requests[key], read) or 0, str(requests[key]))


def _quantity(value: object, read: Callable[[str], int | None] = parse_quantity) -> int | None:
    """Return a quantity above 0; None for what is none, or no limit."""
    text = quantity_text(value)
    number = None if text is None else read(text)
    return number if number and number > 0 else None


def _shm(container: dict[str, Any], pod: dict[str, Any]) -> Iterator[Demand]:
    """Yield the size of what lies in place of /dev/shm; what is no memory with a size is of any."""
    volumes = {each.get("name"): each for each in map(mapping, listed(pod.get("volumes")))}
    for mount in map(mapping, listed(container.get("volumeMounts"))):
        if takes_shm(str(mount.get("mountPath"))):
            empty = mapping(mapping(volumes.get(mount.get("name"))).get("emptyDir"))
            size = empty.get("sizeLimit") if empty.get("medium") == "Memory" else None
            yield Demand(SHM_SIZE, "/dev/shm", _quantity(size), "no size" if size is None else str(size))


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
    claims = mapping(container.get("resources")).get("claims")
    if claims:
        yield f"claims: {claims}"
    yield from (f"{name}: {each}" for name, each in _resources(container).items() if GPU_RESOURCE.fullmatch(name))
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
    for kind in volume.keys() - POD_VOLUMES:
        yield Demand(CLAIM, "the claims", f"{kind} {name}", f"the {kind} volume {name}, which names no claim")
    attributes = mapping(mapping(volume.get("csi")).get("volumeAttributes"))
    for path in (str(value) for value in attributes.values() if str(value).startswith("/")):
        yield host_path("the folders of the host", path, "/")  # no text tells that it is none
    for each in map(mapping, listed(mapping(volume.get("projected")).get("sources"))):
        if any(kind in each for kind in POD_TOKENS):
            yield Demand(TOKEN, "the tokens of the API", name, f"volume {name}")


def object_demands(value: object) -> Iterator[Demand]:
    """Yield what an object takes beside its pods' specs: by annotations, by labels and by queues."""
    for key, below in value.items() if isinstance(value, dict) else enumerate(listed(value)):
        if key in ("annotations", "labels"):
            read = annotation_demands if key == "annotations" else label_demands
            for name, each in mapping(below).items():
                yield from read(str(name), str(each))
        elif key == "schedulingPolicy":
            for name, kind in _SCHEDULING:
                if name in mapping(below):
                    yield Demand(kind, f"the {kind}", str(below[name]), str(below[name]))
        elif isinstance(below, (dict, list)):
            yield from object_demands(below)
