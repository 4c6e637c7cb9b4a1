"""The one container of a text that becomes a job file."""

from __future__ import annotations

import math
import posixpath
import shlex
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from trainlaunch.diagnostics import Diagnostic, Severity, Span
from trainlaunch.errors import JobFileRejected
from trainlaunch.formats.workload import stated
from trainlaunch.job.reserved import KUBERNETES_LABEL_PREFIX, LABEL_PREFIX
from trainlaunch.kinds import KINDS, Path
from trainlaunch.lint.document_kinds import JOB_FILE
from trainlaunch.lint.file_kinds import TEMPLATE, FileKind
from trainlaunch.lint.linter import MAX_BYTES, lint_bytes
from trainlaunch.lint.readers import UnreadableText, read_text
from trainlaunch.render.header import read_header
from trainlaunch.rules.sources.source_text import (
    DOCKERFILE,
    ECS,
    SAGEMAKER,
    SHELL,
    TRAINING_SCRIPT,
    SourceContainer,
    SourceText,
    at,
    below,
    entries_in,
    items_in,
    text_at,
)
from trainlaunch.rules.sources.training_commands import is_training
from trainlaunch.targets import TEXTS
from trainlaunch.yamltree.tolerant import Node

_FIX = "name a file with a docker run line, a Compose service or a pod; for a script: `trainlaunch init train.py`"
_IMAGE_READERS = ("apptainer", "singularity", "enroot")  # programs that start images of their own
_STARTING = {"exec", "run", "shell", "start", "instance", "batch"}
# Kinds of which nothing is converted: what the text is, and what to do in its place.
REFUSED = {
    DOCKERFILE: ("a Dockerfile, which builds an image and starts none", "name the file that starts the image"),
    SAGEMAKER: (
        "a configuration of SageMaker's local mode, which names no image",
        "name the script: `trainlaunch init train.py`",
    ),
    ECS: (
        "a task definition of Amazon ECS, which can't be converted",
        "give its values to `trainlaunch init --image IMAGE --cpus N --memory SIZE --gpus N`, then add its command, "
        "environment and mounts to that job file",
    ),
    TRAINING_SCRIPT: ("a script, which can't be converted", "leave out --from: `trainlaunch init SCRIPT`"),
}
_OURS = (LABEL_PREFIX, KUBERNETES_LABEL_PREFIX)


class ChosenContainer(NamedTuple):
    """The container that was chosen, and the text around it."""

    file: SourceText
    written: SourceContainer


def choose(data: bytes, name: str, pick: str | None) -> ChosenContainer:
    """Return the container of a text, the one called `pick` of several. Raises JobFileRejected."""
    file = _read(data, name)
    if file.kind in REFUSED:
        what, fix = REFUSED[file.kind]
        fix = fix.replace("SCRIPT", "train.py" if name == "-" else shlex.quote(name))
        raise _rejected("TL382", f"{name} is {what}", fix, Span(name, 1, 1, 1, 1))
    containers = [each for each in file.containers if "initContainers[" not in each.workload.place]
    if not containers:
        batch = ("srun",) if "--container-image" in file.text else ()  # Slurm's pyxis
        started = [each for each in _IMAGE_READERS if _starts(file, each)] or [*batch]
        what, fix = f"{name} starts no container that can be read", _FIX
        if file.kind == SHELL and started:
            what = f"{name} starts its container by {started[0]}, which init does not convert"
            fix = "write its image, command and mounts into a job file: `trainlaunch init --image IMAGE` begins one"
        raise _rejected("TL382", what, fix, Span(name, 1, 1, 1, 1))
    names = _names(containers)
    if pick is None:
        if len(containers) == 1 or _are_nodes(containers) or _are_groups(containers):
            return ChosenContainer(file, containers[0])
        return _only_training(file, containers, names, name)
    chosen = [each for each, called in zip(containers, names, strict=True) if pick in called]
    if len(chosen) == 1:
        return ChosenContainer(file, chosen[0])
    what = "several containers" if chosen else "no container"
    fix = f"write one of {', '.join(called[-1] for called in names)}"
    raise _rejected("TL382", f"{name} has {what} called {pick}", fix, None)


def _starts(file: SourceText, program: str) -> bool:
    """Whether a command starts an image by a program: not one that installs it, or loads its module."""
    commands = ([posixpath.basename(word.text) for word in command] for command in file.commands)
    return any(program in each and _STARTING & {*each[each.index(program) :]} for each in commands)


def _read(data: bytes, name: str) -> SourceText:
    if len(data) > MAX_BYTES:
        raise JobFileRejected(each.diagnostic for each in lint_bytes(data, name, SHELL).findings)
    text = data.decode("utf-8", errors="replace")
    _refuse_text_of_others(text, name)
    read = read_text(text, name)
    if isinstance(read, FileKind) and read.name is None and name != "-":
        read = _named(read_text(text, "-"), text, name)  # no name that tells: what it says does
    kind = read.name if isinstance(read, FileKind) else read.kind
    if kind is None:
        raise _rejected("TL382", f"{name} is not a file that can be converted", _FIX, Span(name, 1, 1, 1, 1))
    if kind == JOB_FILE:
        fix = f"use it as it is: `trainlaunch plan {name}`"
        raise _rejected("TL382", f"{name} is a job file already", fix, Span(name, 1, 1, 1, 1))
    if isinstance(read, SourceText) and text.encode() == data:
        return read
    # lint says why, and where.
    found = [each.diagnostic for each in lint_bytes(data, name, None if kind == TEMPLATE else kind).findings[:1]]
    fix = "pipe the rendered file: helm template CHART | trainlaunch init --from -"
    raise JobFileRejected(
        each._replace(severity=Severity.ERROR, fix=fix if kind == TEMPLATE else each.fix) for each in found
    )


def _refuse_text_of_others(text: str, name: str) -> None:
    """Raise JobFileRejected for a rendered file that another tool runs: it has the job in that tool's own pieces."""
    try:
        header = read_header(text)
    except ValueError:  # somebody changed it, or put several into one file
        return
    if header is not None and header.target in TEXTS:
        raise _rejected(
            "TL382",
            f"{name} is a rendered file for {header.target}, which can't be converted back",
            f"use the job file that it was rendered from: {header.job_file}",
            Span(name, header.line, 1, header.line, 1),
        )


def _named(
    read: SourceText | UnreadableText | FileKind, text: str, name: str
) -> SourceText | UnreadableText | FileKind:
    """Return what was read of a nameless text, with its places in `name`."""
    kind = read.kind if isinstance(read, (SourceText, UnreadableText)) else read.name
    return read if kind is None or kind == TEMPLATE else read_text(text, name, kind)


def _names(containers: list[SourceContainer]) -> list[tuple[str, ...]]:
    """Return what each container may be called, the shortest that is its own last."""
    names = [_called(each, number) for number, each in enumerate(containers, start=1)]
    lasts = [each[-1] for each in names]
    return [(*each, str(number)) if lasts.count(each[-1]) > 1 else each for number, each in enumerate(names, start=1)]


def _called(written: SourceContainer, number: int) -> tuple[str, ...]:
    workload = written.workload
    inner = workload.rest.get("container.name")
    name = stated(workload.name)
    return tuple(str(each) for each in (str(number), workload.place, inner, name) if each)


def _are_nodes(containers: list[SourceContainer]) -> bool:
    """Return whether all are nodes of one rendered job: each has its label."""
    labels = [{**each.workload.labels} for each in containers]
    jobs = {stated(each.get(f"{start}job")) for each in labels for start in _OURS if f"{start}job" in each}
    return len(jobs) == 1 and all(any(f"{start}job" in each for start in _OURS) for each in labels)


def _are_groups(containers: list[SourceContainer]) -> bool:
    """Return whether all are groups of pods of one object that run the same: a PyTorchJob's Master and Workers."""
    first = containers[0]
    pods = {id(each.pod) for each in containers}
    same = all(_object_of(each) == _object_of(first) and _runs(each) == _runs(first) for each in containers)
    return first.pod is not None and len(pods) == len(containers) and bool(first.argv) and same


def _object_of(written: SourceContainer) -> str:
    return written.workload.place.partition(" ")[0]


def groups_beside(found: ChosenContainer) -> Iterator[SourceContainer]:
    """Yield the containers of other pods of the chosen one's object: its other groups of replicas."""
    own = found.written
    for each in found.file.containers:
        if own.pod is not None and each.pod is not own.pod and _object_of(each) == _object_of(own):
            yield each


def pods_of(found: ChosenContainer) -> int:
    """Return how many pods of the chosen one's object run the same as it; 1 where the text doesn't say."""
    own, total = found.written, 0
    kind = next((each for each in KINDS.values() if each.name == own.object_kind), None)
    roots = [each for each in found.file.nodes if own.pod in below(each)] if kind is not None and own.pod else []
    for group in _below_path(roots, kind.groups) if kind is not None else ():
        inside = [each for each in found.file.containers if each.pod is not None and each.pod in below(group)]
        if any(_runs(each) == _runs(own) for each in inside):
            counts = [text_at(group, *path) or "1" for path in kind.counts] if kind is not None else []
            total += math.prod(map(int, counts)) if all(map(str.isdecimal, counts)) else 1
    return total or 1


def _below_path(nodes: Iterable[Node], path: Path) -> Iterator[Node]:
    """Yield what lies at a path below nodes; a step `*` is every item."""
    if not path:
        yield from nodes
        return
    step, *rest = path
    for node in nodes:
        found = (*items_in(node), *entries_in(node).values()) if step == "*" else (at(node, step),)
        yield from _below_path(filter(None, found), tuple(rest))


def _runs(written: SourceContainer) -> tuple[object, ...]:
    return written.argv, stated(written.workload.image)


def _only_training(
    file: SourceText, containers: list[SourceContainer], names: list[tuple[str, ...]], name: str
) -> ChosenContainer:
    """Return the only container that trains beside others that don't, as a pod's is beside its sidecars."""
    training = [each for each in containers if any(map(is_training, each.argvs))]
    if len(training) == 1 and training[0].pod is not None and all(each.pod is training[0].pod for each in containers):
        return ChosenContainer(file, training[0])
    listed = ", ".join(called[-1] for called in names)
    example = next((called for each, called in zip(containers, names, strict=True) if each in training), names[0])
    raise _rejected(
        "TL383",
        f"{name} starts {len(containers)} containers: {listed}",
        f"add --pick with one of them, like --pick {example[-1]}",
        containers[1].workload.span,
    )


def _rejected(code: str, message: str, fix: str, span: Span | None) -> JobFileRejected:
    return JobFileRejected([Diagnostic(code, message, fix, span=span)])
