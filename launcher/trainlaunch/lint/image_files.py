"""Where the files of an image lie in a repository: what its Dockerfile copies, and what a container mounts over it."""

from __future__ import annotations

import fnmatch
import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from trainlaunch.formats.workload import Known, Unknown, stated
from trainlaunch.lint.dockerfile import words_of_json
from trainlaunch.rules.sources.near_files import BuildContext
from trainlaunch.rules.sources.programs import program
from trainlaunch.rules.sources.source_text import COMPOSE, BuiltImage, Instruction, SourceContainer, context_of
from trainlaunch.rules.sources.training_commands import argvs_of

_FROM_ELSEWHERE = re.compile(r"--(?:from|parents)\b|<<|[a-z]{3,5}://|git@")
_HERE = re.compile(r"\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`|\$\(CURDIR\)")
_SCRIPT = re.compile(r"(?<!\S)[\w./-]+\.(?:py|sh)(?!\S)")
_FLAGS = re.compile(r"^\s*(?:--\S*\s+)+")
_IN_WORKSPACE = re.compile(r"(?:docker\.io/)?pytorch/pytorch\b|nvcr\.io/nvidia/pytorch\b")
_PATTERN = re.compile(r"[*?\[]")


def build_context(instructions: Sequence[Instruction], base: str, context: Path) -> BuildContext:
    """Return what instructions copy of a build's folder `context`, and the folder of the image in which they end."""
    folder = "/workspace" if _IN_WORKSPACE.match(base) else "/"
    copies: list[tuple[str, str | None]] = []
    for each in instructions:
        if each.name == "WORKDIR":
            folder = _inside(folder, each.value.strip().strip("\"'"))
        elif each.name in {"COPY", "ADD"} and _FROM_ELSEWHERE.search(each.value):
            place = _inside(folder, "".join(_words(each.value)[-1:]))
            copies += [(place, None), (posixpath.join(place, ""), None)]
        elif each.name in {"COPY", "ADD"}:
            copies += _copied(_words(each.value), folder, context)
    if any(each.name == "RUN" and "git clone" in each.value for each in instructions):
        return BuildContext("", (), folder)  # it may have any file
    whole = any(source == "" for _, source in copies) or all(each.name not in {"COPY", "ADD"} for each in instructions)
    return BuildContext("", tuple(copies), folder, whole)


def _inside(folder: str, path: str) -> str:
    """Return a path of an image; one that begins with a variable is as good as absolute."""
    return posixpath.normpath(path if path.startswith("$") else posixpath.join(folder, path))


def _words(value: str) -> list[str]:
    value = _FLAGS.sub("", value)
    return words_of_json(value) or [each.strip("\"'") for each in value.split()]


def _copied(words: list[str], folder: str, context: Path) -> Iterator[tuple[str, str]]:
    """Yield what one instruction copies: a folder's content, or a file to a name or into a folder."""
    *sources, target = words or [""]
    place = _inside(folder, target)
    for source in (found for each in sources for found in _matching(each.lstrip("/") or ".", context)):
        if os.path.isdir(context / source):  # noqa: PTH112 - which may raise for a name that is too long
            yield posixpath.join(place, ""), "" if source == "." else posixpath.join(source, "")
        else:
            yield place, source
            yield posixpath.join(place, posixpath.basename(source)), source


def _matching(source: str, context: Path) -> list[str]:
    """Return what a source names; a pattern of folders may lead anywhere, and names nothing."""
    source = posixpath.normpath(source)
    head, name = posixpath.split(source)
    if not _PATTERN.search(source):
        return [source]
    try:
        names = [] if _PATTERN.search(head) else [each.name for each in (context / head).iterdir()]
    except (OSError, ValueError):
        return []
    return [posixpath.join(head, each) for each in sorted(fnmatch.filter(names, name))]


def mounted(container: SourceContainer, context: str) -> Iterator[tuple[str, str | None]]:
    """Yield what a container's mounts lay over the files of its image, as `BuildContext` has its copies.

    A path of Compose is seen from its file; one of a command from the folder of the build (`context`), where most run.
    """
    for target, source in sorted(_mounts(container), key=lambda each: len(each[0])):
        yield posixpath.join(target, ""), None
        of_compose = container.workload.format == COMPOSE
        if not source.startswith(".") or not (of_compose or _is_around(context)):
            continue
        place = posixpath.relpath(source, context) if of_compose else posixpath.normpath(source)
        yield posixpath.join(target, ""), "" if place == "." else posixpath.join(place, "")
        yield target, place


def _mounts(container: SourceContainer) -> Iterator[tuple[str, str]]:
    """Yield the target and the source of each mount, a point for the current folder."""
    for mount in container.workload.mounts:
        source = mount.source.text if isinstance(mount.source, Known | Unknown) else ""
        yield posixpath.normpath(stated(mount.target) or "-"), _HERE.sub(".", source)


def _is_around(folder: str) -> bool:
    """Return whether a build's folder is that of the text, or one above it."""
    return {*folder.split("/")} <= {".", ".."}


def runs_known_files(container: SourceContainer, image: BuiltImage) -> bool:
    """Return whether each script that a container runs is surely a file of the repository."""
    argv = (*image.entrypoint, *image.command, *container.argv)
    named = {*(program(each).script for each in argvs_of(argv)), *_SCRIPT.findall(" ".join(argv))} - {""}
    base = Path(container.workload.span.file).parent / image.context.folder
    context = context_of(container._replace(built=image))
    return bool(named) and all(context.copied(base, each) for each in named)


def is_covered(container: SourceContainer, image: BuiltImage) -> bool:
    """Return whether a mount lies over what the image would run: another folder than the one of which it is built."""
    folder = stated(container.workload.working_dir) or image.context.inside
    words = " ".join((*image.entrypoint, *image.command, *container.argv)).split()  # those of a shell's text, too
    run = {folder, *(posixpath.join(folder, each) for each in words if each.endswith((".py", ".sh")))}
    own = _is_around(image.context.folder)
    for target, source in _mounts(container):
        same = posixpath.normpath(posixpath.join(folder, source))
        if not (same == target and own) and any(
            posixpath.join(each, "").startswith(posixpath.join(target, "")) for each in run
        ):
            return True
    return False
