"""Compose: what its text must say, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trainlaunch.formats.compose import read_documents
from trainlaunch.formats.workload import GpuRequest, Known, MountPoint, Value, Workload, flat
from trainlaunch.job.reserved import LABEL_PREFIX
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.target_names import node_names
from trainlaunch.verify.expected_workload import absolute, engine_workload, plain, planned
from trainlaunch.yamltree.scalars import value_of
from trainlaunch.yamltree.tolerant import Mapping as YamlMapping
from trainlaunch.yamltree.tolerant import Node, Scalar, Sequence, documents

_JOB_LABEL, _NODE_LABEL = LABEL_PREFIX + "job", LABEL_PREFIX + "node"
_SERVICE = "service."


def expected(plan: LaunchPlan, base: Path | None) -> Workload:
    """Return what the file's first service must say; `rest` has how each other node differs, and what is beside."""
    common = engine_workload(plan)
    first, *others = node_names(plan.name, plan.nodes)
    volumes = {mount.source for mount in plan.job.mounts if mount.type == "volume"}
    service: dict[str, object] = {"init": True, "restart": "no", "container_name": first}
    if others:
        service["hostname"] = first
        common = common._replace(labels={**common.labels, _NODE_LABEL: planned("0")}, gpus=_gpus(plan, 0))
    rest = {
        "name": plan.name,
        "service": service,
        "nodes": {str(number): _other_node(plan, number, name) for number, name in enumerate(others, start=1)},
        "networks": {"default": {"labels": {_JOB_LABEL: plan.job.name}}},
        "volumes": {name: {"name": name} for name in volumes},
    }
    return common._replace(name=planned(first), rest=dict(flat(rest, "")))


def _other_node(plan: LaunchPlan, number: int, name: str) -> dict[str, object]:
    """Return all in which a node differs from the first."""
    gpus = {} if not plan.gpus else {"devices gpus": ",".join(_gpu_ids(plan, number))}
    depends_on = {"rest service.depends_on.0": node_names(plan.name, plan.nodes)[0]}
    own = {f"rest service.{key}": name for key in ("hostname", "container_name")}
    return {"name": name, f"labels {_NODE_LABEL}": str(number), **gpus, **own, **depends_on}


def _gpus(plan: LaunchPlan, number: int) -> Value[GpuRequest]:
    """Return the GPUs of a node; several share one host, each with its own part of them."""
    return planned(GpuRequest(ids=_gpu_ids(plan, number))) if plan.gpus else None


def _gpu_ids(plan: LaunchPlan, number: int) -> tuple[str, ...]:
    before = number * plan.gpus.count
    return tuple(str(before + gpu) for gpu in range(plan.gpus.count))


def parse_rendering(text: str, folder: Path) -> Workload:
    """Return what the first service says; `rest` has what each other one says differently, and all that is beside them.

    Relative binds are read from `folder`. Raises ValueError where the text has no services, or says in a short form
    what a rendered file writes in the long one.
    """
    found = documents(text, "")
    workloads = [_placed(each, folder) for each in read_documents(found)]
    if not workloads:
        raise ValueError(found.broken.message if found.broken else "no services")
    for root in found.nodes:
        _check_forms(root)
    first, *others = workloads
    if not others:
        return first
    own = plain(first._replace(rest={key: value for key, value in first.rest.items() if key.startswith(_SERVICE)}))
    nodes = {str(number): _differing(own, plain(other)) for number, other in enumerate(others, start=1)}
    return first._replace(rest={**first.rest, **dict(flat({"nodes": nodes}, ""))})


def _check_forms(root: Node) -> None:
    """Raise ValueError where a service of a document says something in a short form."""
    services = root.items.get("services") if isinstance(root, YamlMapping) else None
    for service in services.items.values() if isinstance(services, YamlMapping) else ():
        for key, node in service.items.items() if isinstance(service, YamlMapping) else ():
            if not _LONG_FORM.get(key, _is_anything)(node):
                raise ValueError(f"{key} is not in its long form")


def _is_anything(node: Node) -> bool:
    return True


def _is_string(node: Node) -> bool:
    return isinstance(node, Scalar) and isinstance(value_of(node), str)


def _is_mapping_of_strings(node: Node) -> bool:
    return isinstance(node, YamlMapping) and all(map(_is_string, node.items.values()))


def _is_list_of_mappings(node: Node) -> bool:
    return isinstance(node, Sequence) and all(isinstance(each, YamlMapping) for each in node.items)


# Rendered files have these in full, so that no reader can take them for something else.
_LONG_FORM = {
    **dict.fromkeys(("shm_size", "mem_limit", "cpus"), _is_string),
    **dict.fromkeys(("environment", "labels"), _is_mapping_of_strings),
    **dict.fromkeys(("volumes", "secrets"), _is_list_of_mappings),
}


def _differing(first: Mapping[str, object], other: Mapping[str, object]) -> dict[str, object]:
    """Return each field of `other` that is not as in `first`; of mappings the items."""
    found: dict[str, object] = {}
    for field, value in other.items():
        before = first[field]
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            keys = [key for key in {**before, **value} if before.get(key) != value.get(key)]
            found |= {f"{field} {key}": value.get(key, "nothing") for key in keys}
        elif value != before:
            found[field] = "nothing" if value in (None, ()) else value  # an empty list would say nothing
    return found


def _placed(workload: Workload, folder: Path) -> Workload:
    return workload._replace(mounts=tuple(_mount(each, folder) for each in workload.mounts))


def _mount(mount: MountPoint, folder: Path) -> MountPoint:
    """Return a mount with the whole path of what it binds; files of secrets are binds to the plan."""
    if mount.type not in ("bind", "secret"):
        return mount
    source = mount.source
    if isinstance(source, Known):
        source = Known(str(absolute(source.value, folder)), source.text, source.span)
    return mount._replace(type="bind", source=source)
