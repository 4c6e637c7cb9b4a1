"""Paths of a container that this host has elsewhere: a bind's target stands for its source where nothing is mounted."""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path


def host_path(argument: str, binds: dict[str, str]) -> str:
    """Return `argument` with its path on this host; `binds` is source by target.

    A path is found where it is the whole argument or stands right after an `=`, at or below a target; the deepest
    target wins, as it would among mounts. Any other argument is returned as it is.
    """
    for target in sorted(binds, key=len, reverse=True):
        found = _at_or_below(target).fullmatch(argument)
        if found:
            return found["before"] + posixpath.normpath(binds[target] + found["rest"])
    return argument


def is_mapped(argument: str, target: str) -> bool:
    """Whether `host_path` would find a path at or below `target` in this argument."""
    return _at_or_below(target).fullmatch(argument) is not None


def names(text: str, target: str) -> bool:
    """Whether a path at or below `target` stands anywhere in `text`."""
    return re.search(rf"(?<![\w./-]){re.escape(posixpath.normpath(target))}(?![\w.-])", text) is not None


def _at_or_below(target: str) -> re.Pattern[str]:
    """Match one path, alone or as an option's value; shell text that merely starts with one is no path."""
    return re.compile(
        rf"(?P<before>(?:[-+\w.]+=)?){re.escape(posixpath.normpath(target))}(?P<rest>(?:/[^\s;&|<>$`\"'()*?]*)?)"
    )


def repository_of(file: str) -> Path | None:
    """Return the nearest folder above a file that is a repository's root, None outside of one; links stay links."""
    folder = Path(os.path.normpath(Path(file).absolute().parent))
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def repository_root(job_file: str) -> Path:
    """Return the root of a job file's repository; its own folder outside of one."""
    return repository_of(job_file) or Path(os.path.normpath(Path(job_file).absolute().parent))


def below_repository(job_file: str, source: str) -> str | None:
    """Return a path relative to a job file's folder as seen from its repository's root; None for one outside."""
    root = repository_root(job_file)
    path = os.path.relpath(Path(job_file).absolute().parent / source, root)
    return None if path == ".." or path.startswith("../") else path


def normal_place(path: str) -> str:
    """Return an absolute path in a container as it is compared; two slashes in front are one there."""
    return posixpath.normpath(path).replace("//", "/")
