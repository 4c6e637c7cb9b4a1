"""Containers whose /dev/shm has no size: none is set, or it stands where it sizes something else."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainlaunch.diagnostics import Severity, Span
from trainlaunch.formats.quantities import engine_bytes
from trainlaunch.formats.workload import ABSENT, Known, Unknown
from trainlaunch.rules.base.rule import Problem
from trainlaunch.rules.base.text_rule import container_rule, text_rule
from trainlaunch.rules.sources.container_facts import (
    is_fragment,
    lacks_shm,
    may_mount,
    size_text,
    suggested_shm,
)
from trainlaunch.rules.sources.programs import SERVING, YOLO, program
from trainlaunch.rules.sources.purpose import (
    certainly_trains,
    is_torch_base,
    trains,
    workers_of,
)
from trainlaunch.rules.sources.shm_need import IDLE_IMAGE, LONE_GPU, Beside, need, object_of
from trainlaunch.rules.sources.source_text import (
    COMPOSE,
    DEVCONTAINER,
    ECS,
    GITHUB,
    KUBERNETES,
    PRACTICE,
    Instruction,
    SourceContainer,
    SourceText,
    at,
    below,
    is_fargate,
    items_in,
)
from trainlaunch.rules.sources.training_commands import argvs_of, is_training, loader_workers, program_of
from trainlaunch.units import MIB
from trainlaunch.yamltree.tolerant import Mapping, Node, Scalar

_WATCHERS = frozenset({"nvidia-smi", "rocm-smi", "nvcc", "df"})
_ARGUMENT = re.compile(r"(?:docker_)?shm[-_]?size", re.IGNORECASE)
_BUILDS = frozenset({"docker", "podman", "nerdctl", "buildx", "buildah", "image"})
_BUILD_WHY = "a build's size holds for its RUN steps; an image carries none, and each container starts with 64 MiB"
_TORCH = re.compile(
    r"\b(?:py)?torch|\b(?:deepspeed|lightning|accelerate|transformers|megatron|ultralytics|detectron2)\b|\bmm(?:det|seg|cv|engine)",
    re.IGNORECASE,
)
_MOUNT = re.compile(r"\bmount\s(?:(?!\bmount\s)[^;&|\n])*/dev/shm\b|\btmpfs\s+/dev/shm\b|/dev/shm\s+tmpfs\b")
_RUN_MOUNT = re.compile(r"--mount=(?:(?!--mount=)\S)*(?:target|dst|destination)=/dev/shm\b")
_INSTRUCTION = re.compile(r"(?:^|\s)((?:docker_)?shm[-_]?size)\s*[= ]", re.IGNORECASE)
_VARIABLE = re.compile(r"(?:DOCKER_)?(?:DEV_?)?SHM(?:EM)?_?SIZE", re.IGNORECASE)


@text_rule("TL301", Severity.ERROR)
def shm_size_missing(file: SourceText) -> Iterator[Problem]:
    """A container's /dev/shm is the runtime's 64 MiB, and it may need more."""
    sized = [each for each in file.containers if file.kind == KUBERNETES and each.workload.shm.kind != ABSENT]
    beside = Beside(
        set(map(object_of, sized)), _sized_at_build(file), tuple(_training_lines(file) if file.containers else ())
    )
    for container in file.containers:
        shm = container.workload.shm
        if not lacks_shm(container) or shm.span is not None or _is_set_up(container):
            continue
        if is_fragment(container) or _is_of_ray(container):
            continue
        severity, reason = need(container, beside)
        if file.is_document and (container.indirect or reason == IDLE_IMAGE):
            severity = Severity.INFO if severity is not None else None
        elif severity is Severity.ERROR and (container.indirect or _may_be_sized(file, container)):
            severity = Severity.WARNING  # what lies there now may not be what runs
        if severity is not None:
            group = PRACTICE if reason == LONE_GPU else ""
            yield _missing(file, container, reason)._replace(severity=severity, group=group)


def _may_be_sized(file: SourceText, container: SourceContainer) -> bool:
    """Return whether something else may size /dev/shm: a mount that only a run knows, the daemon, or the command."""
    unknown = any(isinstance(each.target, Unknown) for each in container.workload.mounts)
    told = "default-shm-size" in file.text or "--volumes-from" in container.workload.rest
    bound = file.kind == GITHUB and "/dev/shm:/dev/shm" in file.text  # by container.volumes
    return unknown or told or bound or (may_mount(container.workload) and "/dev/shm" in " ".join(container.argv))


def _training_lines(file: SourceText) -> Iterator[tuple[int, bool]]:
    """Yield the lines of a text's commands that train, outside of any container's own, where something is torch's.

    With each comes whether it is started by a launcher or sets workers, which need more than one process alone.
    """
    torch = _TORCH.search(file.text) is not None
    for command in file.commands:
        words = tuple(each.text for each in command)
        launched = program(words).launched
        if is_training(words) and (torch or launched):
            certain = launched or program(words).name == YOLO or bool(loader_workers([words]))
            yield file.source.span(command[0].start, command[0].start).line, certain


def _is_set_up(container: SourceContainer) -> bool:
    """Return whether a container only prepares the pod or watches the machine."""
    place = container.workload.place
    if ".initContainers[" in f".{place}" or " initContainers[" in place:
        return True
    programs = {program_of(each) for each in container.argvs}
    return bool(programs) and programs <= _WATCHERS


def _is_of_ray(container: SourceContainer) -> bool:
    """Return whether KubeRay adds /dev/shm itself: to the first container of each of its pods, at its memory limit."""
    return container.object_kind.startswith("Ray") and container.workload.place.endswith(" containers[0]")


def _sized_at_build(file: SourceText) -> bool:
    """Return whether the file sizes /dev/shm of an image's build."""
    return any(
        each.text == "build" and command[index - 1].text in {"docker", "podman", "buildx"}
        for command in file.commands
        for index, each in enumerate(command[:4])
        if index and any(word.text.startswith("--shm-size") for word in command)
    )


def _missing(file: SourceText, container: SourceContainer, reason: str) -> Problem:
    workload = container.workload
    size = suggested_shm(workload, workers_of(container))
    shown = size_text(size, container)
    fix = {
        COMPOSE: f"add shm_size: {shown} to the service",
        KUBERNETES: f"add the volume {{name: dshm, emptyDir: {{medium: Memory, sizeLimit: {shown}}}}} to the pod and "
        "mount it at /dev/shm",
        ECS: f"set linuxParameters.sharedMemorySize to {shown}",
    }.get(workload.format, f"add --shm-size={shown}")
    on_fargate = file.kind == ECS and is_fargate(container.pod)
    if on_fargate:
        fix = "run it with the launch type EC2: on Fargate /dev/shm has no size to set"
    if file.kind == DEVCONTAINER:
        fix = f'add "--shm-size={shown}" to runArgs'
    elif file.kind == GITHUB and container.own is not None:
        fix = f"add --shm-size={shown} to container.options"
    takes_edit = not on_fargate and not isinstance(workload.shm.size, Unknown)
    return Problem(
        f"no size of /dev/shm is set, so it has 64 MiB: {reason}",
        fix,
        "workers and ranks pass tensors through /dev/shm; where it is full they die of a bus error or hang",
        workload.place,
        workload.span,
        edits=container.add_shm(size) if container.add_shm is not None and takes_edit else (),
        safe=certainly_trains(container) or is_torch_base(container),
    )


@text_rule("TL313", Severity.ERROR)
def shm_size_at_build(file: SourceText) -> Iterator[Problem]:
    """A size is one that only a build gets."""
    unsized = [each for each in file.containers if lacks_shm(each)]
    for container in unsized:
        if container.workload.format == COMPOSE:
            yield from _of_service(container)
    run = next((each.workload for each in unsized if each.workload.format == "docker_run"), None)
    for span in (*_of_commands(file), *_of_actions(file)) if run is not None else ():
        line = run.span.line if run is not None else 0
        yield Problem(
            f"this sizes /dev/shm of the build alone, and the docker run of line {line} has no --shm-size",
            "add --shm-size to the docker run line",
            _BUILD_WHY,
            span=span,
            severity=Severity.WARNING if any(_may_train(each) for each in unsized) else Severity.INFO,
        )


def _may_train(container: SourceContainer) -> bool:
    return bool(container.purpose.signs) and container.purpose.verdict != SERVING


def _of_service(container: SourceContainer) -> Iterator[Problem]:
    build = at(container.own, "build")
    named = build.items.get("shm_size") if isinstance(build, Mapping) else None
    if isinstance(build, Mapping) and isinstance(named, Scalar):
        span = build.keys["shm_size"].span
        yield _unsized(container, span, "build.shm_size sizes the build alone", named.text)
        return
    for name, span, value in _arguments(at(build, "args")):
        if _ARGUMENT.fullmatch(name):
            yield _unsized(container, span, f"the build argument {name} sizes nothing", value)


def _arguments(listed: Node | None) -> Iterator[tuple[str, Span, str]]:
    """Yield the name of each argument of a build, its place and its value."""
    if isinstance(listed, Mapping):
        for name, key in listed.keys.items():
            value = listed.items[name]
            yield name, key.span, value.text if isinstance(value, Scalar) else ""
    for item in items_in(listed):
        if isinstance(item, Scalar):
            name, _, text = item.text.partition("=")
            yield name, item.span, text


def _unsized(container: SourceContainer, span: Span, message: str, text: str) -> Problem:
    size, place = engine_bytes(text), container.workload.place
    takes_edit = size is not None and size >= MIB
    return Problem(
        f"{message}, and {place} has no shm_size",
        f"add shm_size: {text or '2gb'} to {place}",
        _BUILD_WHY,
        place,
        span,
        severity=None if _may_train(container) and len(container.purpose.signs) > 1 else Severity.INFO,
        edits=container.add_shm(size or 0) if takes_edit and container.add_shm is not None else (),
        safe=_may_train(container) and len(container.purpose.signs) > 1,
    )


def _of_commands(file: SourceText) -> Iterator[Span]:
    """Yield the place of each size that a shell's command gives a build."""
    for command in file.commands:
        words = [each.text for each in command[:6]]
        if "build" in words[1:] and set(words) & _BUILDS:
            flags = [each for each in command if each.text.partition("=")[0] == "--shm-size"]
            yield from (file.source.span(flag.start, flag.end) for flag in flags[:1])


def _of_actions(file: SourceText) -> Iterator[Span]:
    """Yield the place of each size that a workflow gives Docker's action for builds."""
    for node in (each for root in file.nodes for each in below(root)):
        uses, given = at(node, "uses"), at(node, "with")
        if isinstance(uses, Scalar) and "build-push-action" in uses.text and isinstance(given, Mapping):
            key = given.keys.get("shm-size")
            yield from (key.span,) if key is not None else ()


@text_rule("TL314", Severity.ERROR)
def shm_set_in_image(file: SourceText) -> Iterator[Problem]:
    """An instruction of a Dockerfile would size /dev/shm."""
    for each in file.instructions:
        message = _sizing(each)
        if message:
            yield Problem(
                message,
                "delete it, and start the container with --shm-size, shm_size or a Memory emptyDir",
                "/dev/shm belongs to the container, which the image can't size",
                span=file.source.span(each.start, each.end),
                severity=_of_image(file) if each.name == "RUN" and "fstab" not in each.value else Severity.INFO,
            )


def _of_image(file: SourceText) -> Severity:
    """Return how grave a size in an image is: whether its command trains, and with PyTorch."""
    processes = [each for each in file.instructions if each.name in {"CMD", "ENTRYPOINT"}]
    if not any(is_training(argv) for each in processes for argv in argvs_of(tuple(word.text for word in each.words))):
        return Severity.INFO
    torch = any(each.name in {"FROM", "RUN"} and _TORCH.search(each.value) for each in file.instructions)
    return Severity.ERROR if torch else Severity.WARNING


def _sizing(each: Instruction) -> str:
    if each.name == "RUN" and _MOUNT.search(each.value) and not _RUN_MOUNT.search(each.value):
        return "a RUN step can't size /dev/shm of the container"
    variable = _INSTRUCTION.search(each.value) if each.name == "ENV" else None
    return f"the variable {variable[1]} sizes nothing" if variable else ""


@container_rule("TL373", Severity.WARNING)
def shm_size_in_environment(container: SourceContainer) -> Iterator[Problem]:
    """A variable of a container that trains names a size, and its /dev/shm has none."""
    workload, training = container.workload, trains(container)
    if not lacks_shm(container) or is_fragment(container) or not training:
        return
    size = size_text(suggested_shm(workload, workers_of(container)), container)
    for name, value in workload.env.items():
        if _VARIABLE.fullmatch(name) and isinstance(value, Known):
            yield Problem(
                f"the variable {name} {value.text} sizes nothing, and /dev/shm has 64 MiB",
                f"set the size for the container: {size}",
                "engines read flags and keys, no variables",
                span=value.span,
            )
