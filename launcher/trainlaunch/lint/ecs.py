"""Task definitions of Amazon ECS: as the API takes them, JSON or YAML, and as CloudFormation spells them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, TypeVar

from trainlaunch.diagnostics import Edit
from trainlaunch.formats.quantities import is_shm
from trainlaunch.formats.workload import (
    ABSENT,
    CONTAINER,
    HOST,
    SIZE,
    TMPFS,
    GpuRequest,
    Known,
    MountPoint,
    ShmSetting,
    Unknown,
    Value,
    Workload,
    stated,
)
from trainlaunch.lint.edits import is_json, yaml_edits
from trainlaunch.rules.sources.source_text import ECS, SourceContainer, SourceText, at, entries_in, field, items_in
from trainlaunch.rules.sources.training_commands import argv_of, argvs_of
from trainlaunch.units import GIB, MIB
from trainlaunch.yamltree.changes import Set
from trainlaunch.yamltree.tolerant import Documents, Mapping, Node, Scalar, Sequence, Source

T = TypeVar("T")
Path = tuple[str | int, ...]
_CPU_UNITS = 1024  # of one CPU
_BATCH = "AWS::Batch::JobDefinition"
_RESOURCE = "AWS::ECS::TaskDefinition"


def read_ecs(text: str, name: str, found: Documents) -> SourceText:
    """Return the containers of each task definition of a text."""
    containers = [
        each
        for document, root in enumerate(found.nodes)
        for path, task in tasks(root)
        for each in _containers(text, name, (document, *path), task)
    ]
    containers += [
        each
        for document, root in enumerate(found.nodes)
        for path, job in read_batch(root)
        for each in _of_batch(text, name, (document, *path), job)
    ]
    return SourceText(ECS, text, Source(text, name), tuple(containers), found.nodes)


def read_batch(root: Node) -> Iterator[tuple[Path, Mapping]]:
    """Yield each job definition of AWS Batch, whose one container has the fields of one of ECS."""
    if isinstance(at(root, "containerProperties"), Mapping) and isinstance(root, Mapping):
        yield (), root
    yield from _resources(root, _BATCH)


def _of_batch(text: str, name: str, place: Path, job: Mapping) -> Iterator[SourceContainer]:
    key = "containerProperties" if "containerProperties" in job.items else "ContainerProperties"
    own = job.items.get(key)
    if isinstance(own, Mapping):
        title = field(job, "jobDefinitionName")
        workload = _workload(job, own, 0)._replace(place=key, span=(title or own).span, name=_text(title))
        add = _adds(text, name, (int(place[0]), (*place[1:], key)), own)
        argv = argv_of(workload)
        yield SourceContainer(workload, argvs_of(argv), own, job, "", add, argv=argv)


def _resources(root: Node, wanted: str) -> Iterator[tuple[Path, Mapping]]:
    """Yield the properties of each resource of a kind in a CloudFormation stack, with their path."""
    for key, each in entries_in(at(root, "Resources")).items():
        kind, properties = at(each, "Type"), at(each, "Properties")
        if isinstance(kind, Scalar) and kind.text == wanted and isinstance(properties, Mapping):
            yield ("Resources", key, "Properties"), properties


def tasks(root: Node) -> Iterator[tuple[Path, Mapping]]:
    """Yield each task definition of a document with its path: the document itself, or resources of a stack."""
    if isinstance(root, Mapping) and isinstance(root.items.get("containerDefinitions"), Sequence):
        yield (), root
    yield from _resources(root, _RESOURCE)


def _containers(text: str, name: str, place: Path, task: Mapping) -> Iterator[SourceContainer]:
    listed = field(task, "containerDefinitions")
    key = "containerDefinitions" if "containerDefinitions" in task.items else "ContainerDefinitions"
    for index, own in enumerate(items_in(listed)):
        if isinstance(own, Mapping):
            workload = _workload(task, own, index)
            path = (*place[1:], key, index)
            add = _adds(text, name, (int(place[0]), path), own)
            argv = argv_of(workload)
            yield SourceContainer(workload, argvs_of(argv), own, task, "", add, argv=argv)


def _workload(task: Mapping, own: Mapping, index: int) -> Workload:
    name = field(own, "name")
    mounts = tuple(_mounts(own))
    units = _number(field(task, "cpu"), lambda number: number * 1000 // _CPU_UNITS)
    return Workload(
        format=ECS,
        place=f"containerDefinitions[{index}]",
        span=(name if isinstance(name, Scalar) else own).span,
        name=_text(name),
        image=_text(field(own, "image")),
        entrypoint=_argv(field(own, "entryPoint")),
        command=_argv(field(own, "command")),
        env=dict(_variables(field(own, "environment"))),
        shm=_shm(task, own, mounts),
        memory=_number(field(own, "memory"), _mib) or _of_task(field(task, "memory")),
        cpus=units,
        gpus=_gpus(field(own, "resourceRequirements")),
        mounts=mounts,
        user=_text(field(own, "user")),
        working_dir=_text(field(own, "workingDirectory")),
    )


def _mib(number: int) -> int:
    return number * MIB


def _of_task(node: Node | None) -> Value[int]:
    """Return the memory of a whole task, which ECS takes in GB as well."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?GB", node.text) if isinstance(node, Scalar) else None
    if match is None or node is None:
        return _number(node, _mib)
    return Known(int(Fraction(match[1]) * GIB), node.raw, node.span)


def _number(node: Node | None, scaled: Callable[[int], int]) -> Value[int]:
    """Return a whole number; Unknown for what the stack works out, and for what is none."""
    if not isinstance(node, Scalar):
        return None if node is None else Unknown(node.raw, node.span)
    if _is_worked_out(node) or not re.fullmatch(r"[0-9]{1,18}", node.text):
        return Unknown(node.raw, node.span)
    return Known(scaled(int(node.text)), node.raw, node.span)


def _text(node: Node | None) -> Value[str]:
    if not isinstance(node, Scalar) or _is_worked_out(node):
        return None if node is None else Unknown(node.raw, node.span)
    return Known(node.text, node.raw, node.span)


def _is_worked_out(node: Scalar) -> bool:
    """Return whether CloudFormation replaces a value: `!Ref Image`, `!Sub`."""
    return node.tag is not None and not node.tag.startswith("tag:")


def _argv(node: Node | None) -> Value[tuple[str, ...]]:
    if node is None:
        return None
    words = [_text(each) for each in node.items] if isinstance(node, Sequence) else []
    if not isinstance(node, Sequence) or not all(isinstance(each, Known) for each in words):
        return Unknown(node.raw, node.span)
    return Known(tuple(each.value for each in words if isinstance(each, Known)), node.raw, node.span)


def _variables(node: Node | None) -> Iterator[tuple[str, Value[str]]]:
    for each in items_in(node):
        name = stated(_text(field(each, "name")))
        if name is not None:
            yield name, _text(field(each, "value"))


def _gpus(node: Node | None) -> Value[GpuRequest]:
    for each in items_in(node):
        if stated(_text(field(each, "type"))) == "GPU":
            value = field(each, "value")
            count = _number(value, lambda number: number)
            return Known(GpuRequest(count.value), count.text, count.span) if isinstance(count, Known) else count
    return None


def _mounts(own: Mapping) -> Iterator[MountPoint]:
    for each in items_in(field(own, "linuxParameters", "tmpfs")):
        size = _number(field(each, "size"), _mib)
        yield MountPoint("tmpfs", None, _text(field(each, "containerPath")), size=size)
    for each in items_in(field(own, "mountPoints")):
        read_only = stated(_text(field(each, "readOnly"))) == "true"
        yield MountPoint("volume", _text(field(each, "sourceVolume")), _text(field(each, "containerPath")), read_only)


def _shm(task: Mapping, own: Mapping, mounts: tuple[MountPoint, ...]) -> ShmSetting:
    node = field(own, "linuxParameters", "sharedMemorySize")
    size = _number(node, _mib)
    for each in mounts:
        if isinstance(each.target, Known) and is_shm(each.target.value):
            kind = TMPFS if each.type == "tmpfs" else SIZE
            value: Value[int] = each.size if each.type == "tmpfs" else Unknown("", each.target.span)
            return ShmSetting(kind, value, each.target.span, size)
    mode = field(task, "ipcMode")
    word = stated(_text(mode))
    if mode is not None and word in {"host", "task"}:
        return ShmSetting(HOST if word == "host" else CONTAINER, None, mode.span, size)
    if node is None or size is None:
        return ShmSetting(ABSENT)
    return ShmSetting(SIZE, size, node.span)


def _adds(text: str, name: str, place: tuple[int, Path], own: Mapping) -> Callable[[int], tuple[Edit, ...]]:
    document, path = place
    capital = "Name" in own.items or "Image" in own.items
    outer, inner = ("LinuxParameters", "SharedMemorySize") if capital else ("linuxParameters", "sharedMemorySize")

    def add(size: int) -> tuple[Edit, ...]:
        value: Any = size // MIB
        if is_json(text):
            return _json_edits(text, name, own, (outer, inner, value))
        change = Set((*path, outer, inner), value) if outer in own.items else Set((*path, outer), {inner: value})
        return yaml_edits(text, name, [change], document)

    return add


def _json_edits(text: str, name: str, own: Mapping, words: tuple[str, str, int]) -> tuple[Edit, ...]:
    """Return the edit that puts the size in front of what the container, or its parameters, have."""
    outer, inner, value = words
    listed = own.items.get(outer)
    mapping = listed if isinstance(listed, Mapping) else own
    if (listed is not None and not isinstance(listed, Mapping)) or inner in mapping.items:
        return ()
    entry = f'"{inner}": {value}' if mapping is listed else f'"{outer}": {{"{inner}": {value}}}'
    first = mapping.pairs[0][0].start if mapping.pairs else mapping.start + 1
    blanks = text[mapping.start + 1 : first]
    rest = f",{blanks or ' '}" if mapping.pairs else ""
    return (Edit(Source(text, name).span(first, first), entry + rest),)
