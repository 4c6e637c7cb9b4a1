"""Where the files of an image lie in a repository: what its Dockerfile copies, and what a container mounts over it."""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from trainlaunch.formats.workload import Known, Unknown, stated
from trainlaunch.rules.sources.near_files import BuildContext
from trainlaunch.rules.sources.programs import program
from trainlaunch.rules.sources.source_text import COMPOSE, BuiltImage, Instruction, SourceContainer, context_of
from trainlaunch.rules.sources.training_commands import argvs_of

_FROM_ELSEWHERE = re.compile(r"--(?:from|parents)\b|<<|[a-z]{3,5}://|git@")
_HERE = re.compile(r"\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`|\$\(CURDIR\)")
_SCRIPT = re.compile(r"(?<!\S)[\w./-]+\.(?:py|sh)(?!\S)")
_PATTERN = re.compile(r"[*?\[]")


def context_of_image(instructions: Iterable[Instruction], context: Path) -> BuildContext:
    """Return what instructions copy of a build's folder `context`, and the folder of the image in which they end."""
    folder = "/"
    copies: list[tuple[str, str | None]] = []
    for each in instructions:
        if each.name == "WORKDIR":
            folder = _inside(folder, each.value.strip().strip("\"'"))
        elif each.name in {"COPY", "ADD"} and not _FROM_ELSEWHERE.search(each.value):
            copies += _copied(_words(each.value), folder, context)
    return BuildContext("", tuple(copies), folder)


def _inside(folder: str, path: str) -> str:
    """Return a path of an image; one that begins with a variable is as good as absolute."""
    return posixpath.normpath(path if path.startswith("$") else posixpath.join(folder, path))


def _words(value: str) -> list[str]:
    try:
        words = json.loads(value) if value.lstrip().startswith("[") else value.split()
    except ValueError:
        return []
    return [each.strip("\"'") for each in words if isinstance(each, str) and not each.startswith("--")]


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
    if not _PATTERN.search(source):
        return [posixpath.normpath(source)]
    try:
        return sorted(each.relative_to(context).as_posix() for each in context.glob(source))
    except (OSError, ValueError, NotImplementedError):
        return []


def mounted(container: SourceContainer, context: str) -> Iterator[tuple[str, str | None]]:
    """Yield what a container's mounts lay over the files of its image, as `BuildContext` has its copies.

    A path of Compose is seen from its file; one of a command from the folder of the build (`context`), where most run.
    """
    for mount in container.workload.mounts:
        target = posixpath.normpath(stated(mount.target) or "-")
        source = _HERE.sub(".", mount.source.text if isinstance(mount.source, Known | Unknown) else "")
        if not source.startswith("."):
            yield posixpath.join(target, ""), None
            continue
        of_compose = container.workload.format == COMPOSE
        place = posixpath.relpath(source, context) if of_compose else posixpath.normpath(source)
        yield posixpath.join(target, ""), "" if place == "." else posixpath.join(place, "")
        yield target, place


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
    own = {*image.context.folder.split("/")} <= {".", ".."}
    for mount in container.workload.mounts:
        target = posixpath.normpath(stated(mount.target) or "-")
        source = mount.source.text if isinstance(mount.source, Known | Unknown) else ""
        same = posixpath.normpath(posixpath.join(folder, _HERE.sub(".", source)))
        if not (same == target and own) and any(
            posixpath.join(each, "").startswith(posixpath.join(target, "")) for each in run
        ):
            return True
    return False
