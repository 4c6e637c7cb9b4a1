"""The container of a bare command line: folders of this host at their own paths, and what lies outside of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import UsageError
from trainlaunch.init.command_text import ContainerOptions
from trainlaunch.job.shell_commands import program_at
from trainlaunch.run.base.private_files import UnusableState, private_folder

if TYPE_CHECKING:
    from trainlaunch.run.docker.image import CommandImage

# An image has its own; what stands below them in a command is meant there.
_OF_THE_IMAGE = frozenset({"bin", "boot", "dev", "etc", "lib", "lib64", "proc", "run", "sbin", "sys", "usr"})
_OWN_TEMPORARY = frozenset({"/tmp", "/var/tmp"})  # likewise, themselves
READ_ONLY = ":ro"


class CommandContainer(NamedTuple):
    """The container that a command is planned for; `cpus` are its engine's, None where it limits none."""

    options: ContainerOptions
    cpus: int | None


def command_folders(image: str, mounts: Iterable[str], command: Sequence[str]) -> dict[str, bool]:
    """Return what a command of this folder has mounted, True where it only reads; `mounts` are as typed, HOME is last.

    Raises UsageError, also for a word of the command that means something outside of them.
    """
    here, home = str(Path.cwd()), home_of(image)
    if here == "/":
        fix = "start it from the script's own folder"
        raise UsageError(
            [Diagnostic("TL118", "run --image mounts the folder that it starts in, and this one is /", fix)]
        )
    folders = {here: False, **dict(_folders(mounts))}
    outside = list(dict.fromkeys(_outside(command, folders)))
    if outside:
        raise UsageError([_not_mounted(word, path, image) for word, path in outside])
    try:
        private_folder(home)
    except (UnusableState, OSError) as refused:
        fix = "set XDG_CACHE_HOME to a folder of yours"
        told = f"{home}, the command's HOME, can't be made: {refused}"
        raise UsageError([Diagnostic("TL118", told, fix)]) from refused
    return {**folders, str(home): False}


def command_container(image: CommandImage, folders: Mapping[str, bool]) -> CommandContainer:
    """Return the container of a command with these folders, of the user that this process is."""
    user, home = f"{os.getuid()}:{os.getgid()}", str(home_of(image.name))
    return CommandContainer(ContainerOptions(image.name, image.entrypoint, user, home, folders), image.cpus)


def home_of(image: str) -> Path:
    """Return the folder that commands have as HOME in an image; nobody's tokens are there.

    Each image has its own: packages that one Python installs there, and what it compiles, are nothing for another.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(base) if base.startswith("/") else Path(os.path.expanduser("~")) / ".cache"  # noqa: PTH111 - may raise
    return cache / "trainlaunch" / "home" / (re.sub(r"[^A-Za-z0-9._-]+", "-", image)[:120].strip(".") or "image")


def _folders(typed: Iterable[str]) -> Iterator[tuple[str, bool]]:
    for each in typed:
        path = os.path.normpath(Path.cwd() / Path(each.removesuffix(READ_ONLY)).expanduser())
        if not Path(path).exists() or path == "/":
            fix = "name a folder that is here, like --mount /data or --mount /data:ro"
            raise UsageError([Diagnostic("TL118", f"--mount {each} is no folder of this host to mount", fix)])
        yield path, each.endswith(READ_ONLY)


def _outside(command: Sequence[str], folders: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each word of a command that means a path outside of the folders, and what to mount for it."""
    program = program_at(command)
    for at, word in enumerate(command):
        value = word.partition("=")[2] if "=" in word and not word.startswith("/") else word
        if at == program or not value or "\0" in value:
            continue
        meant = os.path.normpath(Path.cwd() / value)
        for path in dict.fromkeys((meant, os.path.realpath(meant))):  # what a link leads to isn't there either
            if (folder := _to_mount(path)) and not _within(path, folders):
                yield word, folder
                break


def _within(path: str, folders: Iterable[str]) -> bool:
    return any(path == each or path.startswith(f"{each}/") for each in folders)


def _to_mount(path: str) -> str:
    """Return the folder that a path needs mounted, empty where it means nothing of this host.

    A path that isn't there yet means a folder that is, but not one that every image has, as /tmp or /home.
    """
    parts = Path(path).parts
    if len(parts) < 2 or parts[1] in _OF_THE_IMAGE or path in _OWN_TEMPORARY:
        return ""
    try:
        if Path(path).exists():
            return path if Path(path).is_dir() else str(Path(path).parent)
        parent = Path(path).parent
        return str(parent) if len(parts) > 3 and parent.is_dir() else ""
    except OSError:  # a word that is longer than a path may be
        return ""


def _not_mounted(word: str, folder: str, image: str) -> Diagnostic:
    return Diagnostic(
        "TL118",
        f"{word} lies outside of the folder {Path.cwd()}, and the container of {image} has no other",
        f"add `--mount {folder}`, or `--mount {folder}{READ_ONLY}` where the command only reads it",
        why="the folder and what --mount names are mounted at their own paths; nothing else of this host is there",
    )
