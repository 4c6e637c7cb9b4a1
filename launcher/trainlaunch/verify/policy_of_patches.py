"""What a policy says of a patched file: each of its questions, asked of every container, volume and file in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from trainlaunch.formats.docker.flags import takes_shm
from trainlaunch.formats.gpus import gives_gpus, gives_gpus_at, is_gpu_resource, may_give_gpus
from trainlaunch.formats.quantities import bytes_of, parse_milli_quantity, parse_quantity, quantity_text
from trainlaunch.job.ceilings import Policy
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
    SPELL,
    TOKEN,
    Demand,
    annotation_demands,
    capability,
    extended,
    host_path,
    label_demands,
    privilege,
    refusals,
)
from trainlaunch.render.apply_patch import documents_of
from trainlaunch.verify.compose_demands import file_demands, service_demands
from trainlaunch.verify.documents import containers_of, listed, mapping, pods_of

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
    yield from (f"{name}: {each}" for name, each in _resources(container).items() if is_gpu_resource(name))
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
        yield Demand(CLAIM, "the PVCs", claim, claim)
    if "image" in volume:
        image = str(mapping(volume["image"]).get("reference"))
        yield Demand(IMAGE, "image of a volume", image, image)
    for kind in volume.keys() - POD_VOLUMES:
        yield Demand(CLAIM, "the PVCs", f"{kind} {name}", f"the {kind} volume {name}, which names no PVC")
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


def broken_by_parts(policy: Policy, bare: str, text: str, folder: str) -> Iterator[tuple[str, str, str]]:
    """Yield what of a patched file the policy doesn't allow: its name, what is allowed, and what it is.

    `bare` is the text without the patch: what that takes is the job's, and its plan has been asked about it already.
    Relative paths are seen from `folder`.
    """
    ours = {each["name"] for each in containers_of(documents_of(bare))}
    ours |= {name for document in documents_of(bare) for name in mapping(document.get("services"))}
    known = set(_demands(bare, ours, folder))
    for part, demand in dict.fromkeys(_demands(text, ours, folder)):
        if (part, demand) not in known:
            for refusal in refusals(policy, demand):
                yield f"{demand.name} of {part}", f"{refusal.rule} {refusal.allowed} ({refusal.place})", demand.said


def _demands(text: str, ours: set[str], folder: str) -> Iterator[tuple[str, Demand]]:
    """Yield all that a text takes, each with the name of the service, container or pod that does."""
    documents = documents_of(text)
    for document in documents:
        services = mapping(document.get("services"))
        taken = [
            (str(name), each)
            for name, service in services.items()
            for each in service_demands(mapping(service), folder, added=name not in ours)
        ]
        yield from (*taken, *_together(taken))
        yield from (("the file", each) for each in file_demands(document, folder))
        yield from (("the pod", each) for each in object_demands(document) if not services)
    for pod in pods_of(documents):
        taken = []
        for container in containers_of(pod):
            name = str(container.get("name"))
            found = [(name, each) for each in container_demands(container, pod, added=name not in ours)]
            yield from found
            taken += found if _stays(container, pod) else []
        yield from _together(taken)
        yield from (("the pod", each) for each in pod_demands(pod))


def _together(taken: list[tuple[str, Demand]]) -> Iterator[tuple[str, Demand]]:
    """Yield the limits of all that a patch adds to a pod or a file: many small ones are as much as a large one."""
    for kind in (MEMORY, CPUS):
        values = [each.value for _, each in taken if each.name == kind and isinstance(each.value, int)]
        if len(values) > 1:
            yield "all that it adds", Demand(kind, kind, sum(values), SPELL[kind](sum(values)))


def _stays(container: dict[str, Any], pod: dict[str, Any]) -> bool:
    """Return whether a container runs beside others: init containers run alone, unless they are restarted."""
    return container in (pod.get("containers") or ()) or container.get("restartPolicy") == "Always"
