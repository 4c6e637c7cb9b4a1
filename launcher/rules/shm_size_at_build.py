"""A size of /dev/shm is given to the build of an image, and not to the container that runs it.

**Why it matters**: it sizes /dev/shm of the RUN steps alone. An image carries no size: `docker run` and Compose start
the container with 64 MiB, and workers die of `Bus error`.

**Example**:

```compose
services:
  train:
    build: {context: ., shm_size: 2gb}
    command: python train.py
```

**Use instead**:

```compose
services:
  train:
    build: {context: .}
    shm_size: 2gb
    command: python train.py
```

An error for a Compose service without shm_size of its own, a warning for `docker build` and CI's build actions beside a
`docker run` without `--shm-size`. Build arguments of that name size nothing either.

**Fix**: `--fix` adds shm_size of the same size to the service; safe. The build's own stays, since RUN steps may use it.

**References**: docker build --shm-size; Compose Build Specification, shm_size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity, Span
from launcher.formats.engine_values import engine_bytes
from launcher.formats.workload import ABSENT
from launcher.rules.written.model import COMPOSE, DEFECTS, Finding, Written, WrittenFile, at, below
from launcher.units import MIB
from launcher.yamltree.documents import Mapping, Scalar, Sequence

CODE = "TL313"
NAME = "shm-size-at-build"
SEVERITY = Severity.ERROR
GROUP = DEFECTS
_ARGUMENT = re.compile(r"(?:docker_)?shm[-_]?size", re.IGNORECASE)
_BUILDS = frozenset({"docker", "podman", "nerdctl", "buildx", "buildah", "image"})
_WHY = "a build's size holds for its RUN steps; an image carries none, and each container starts with 64 MiB"


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a finding for each size that only a build gets."""
    for written in file.containers:
        if written.workload.format == COMPOSE and written.workload.shm.kind == ABSENT:
            yield from _of_service(written)
    if any(each.workload.format == "docker_run" and each.workload.shm.kind == ABSENT for each in file.containers):
        yield from _of_commands(file)
        yield from _of_actions(file)


def _of_service(written: Written) -> Iterator[Finding]:
    build = at(written.own, "build")
    named = build.items.get("shm_size") if isinstance(build, Mapping) else None
    if isinstance(build, Mapping) and isinstance(named, Scalar):
        size = engine_bytes(named.text)
        yield _finding(written, build.keys["shm_size"].span, "build.shm_size sizes the build alone", size, named.text)
        return
    arguments = at(build, "args")
    if isinstance(arguments, Mapping):
        for name, key in arguments.keys.items():
            if _ARGUMENT.fullmatch(name):
                value = arguments.items[name]
                text = value.text if isinstance(value, Scalar) else ""
                message = f"the build argument {name} sizes nothing"
                yield _finding(written, key.span, message, engine_bytes(text), text)
    for item in arguments.items if isinstance(arguments, Sequence) else ():
        if isinstance(item, Scalar) and _ARGUMENT.fullmatch(item.text.partition("=")[0]):
            text = item.text.partition("=")[2]
            message = f"the build argument {item.text.partition('=')[0]} sizes nothing"
            yield _finding(written, item.span, message, engine_bytes(text), text)


def _finding(written: Written, span: Span, message: str, size: int | None, text: str) -> Finding:
    edits = written.add_shm(size) if size is not None and size >= MIB and written.add_shm is not None else ()
    return Finding(
        Diagnostic(
            CODE,
            f"{message}, and {written.workload.place} has no shm_size",
            f"add shm_size: {text or '2gb'} to {written.workload.place}",
            why=_WHY,
            severity=SEVERITY,
            span=span,
            field=written.workload.place,
        ),
        NAME,
        edits,
        safe=bool(edits),
    )


def _of_commands(file: WrittenFile) -> Iterator[Finding]:
    for command in file.commands:
        words = [each.text for each in command[:6]]
        if "build" not in words[1:] or not set(words) & _BUILDS:
            continue
        flag = next((each for each in command if each.text.partition("=")[0] == "--shm-size"), None)
        if flag is not None:
            yield _beside_run(file, file.source.span(flag.start, flag.end))


def _of_actions(file: WrittenFile) -> Iterator[Finding]:
    for node in (each for root in file.nodes for each in below(root)):
        uses, given = at(node, "uses"), at(node, "with")
        if isinstance(uses, Scalar) and "build-push-action" in uses.text and isinstance(given, Mapping):
            key = given.keys.get("shm-size")
            if key is not None:
                yield _beside_run(file, key.span)


def _beside_run(file: WrittenFile, span: Span) -> Finding:
    run = next(
        each.workload
        for each in file.containers
        if each.workload.format == "docker_run" and each.workload.shm.kind == ABSENT
    )
    return Finding(
        Diagnostic(
            CODE,
            f"this sizes /dev/shm of the build alone, and the docker run of line {run.span.line} has no --shm-size",
            "add --shm-size to the docker run line",
            why=_WHY,
            severity=Severity.WARNING,
            span=span,
        ),
        NAME,
    )
