"""Which files of a folder are job files: told by their top-level keys, since nothing else marks them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from trainlaunch.job.fields.table import JOB
from trainlaunch.policy.find_policies import FILE_NAME as POLICY_NAME
from trainlaunch.repository.regular_files import open_regular
from trainlaunch.repository.root import ITS_OWN, Reach
from trainlaunch.yamltree.text_file import read_at_most

_SUFFIXES = (".yaml", ".yml")
_KEY = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*)[ \t]*:(?:[ \t]|$)", re.MULTILINE)
_MAX_BYTES = 1024 * 1024
_FIELDS = frozenset(each.name for each in JOB.fields)
# A text of another kind has some of these beside a name; a job has fields of ours that they don't have.
_OTHERS = frozenset({"apiVersion", "services", "jobs", "on", "runs", "steps", "repos", "hooks", "version"})
_TELLING = frozenset({"command", "script", "data_loader", "profile", "torchrun", "resources", "target_overrides"})


def find_jobs(paths: Iterable[Path], *, reach: Reach = ITS_OWN) -> list[Path]:
    """Return job files: `paths` that are no folders as they are, and those in folders below them, in order.

    A file and links to it are one. Hidden folders and links to folders are not entered. Raises OSError for a folder
    that can't be read.
    """
    found: dict[str, Path] = {}
    for path in paths:
        for each in _files_below(path, reach) if path.is_dir() else (path,):
            other = found.setdefault(os.path.realpath(each), each)
            if other is not each and other.is_symlink() and not each.is_symlink():
                found[os.path.realpath(each)] = each
    return list(found.values())


def _files_below(folder: Path, reach: Reach) -> Iterator[Path]:
    def closed(cause: OSError) -> None:
        raise cause

    for parent, folders, files in os.walk(folder, onerror=closed):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for name in sorted(files):
            path = Path(parent, name)
            if name.endswith(_SUFFIXES) and name != POLICY_NAME:
                led_away = not reach.holds(path, path)  # which is said where it is read as a job
                if led_away or (path.is_file() and is_job(path)):
                    yield path


def is_job(path: Path) -> bool:
    """Return whether a file has a job's keys; one with a mistake in it, or closed to us, is one all the same."""
    try:
        with open_regular(path) as file:
            text = read_at_most(file, _MAX_BYTES).decode(errors="replace")
    except OSError:
        return True  # it is said where it is read as a job, and stops no other
    keys = set(_KEY.findall(text))
    return "name" in keys and not keys & _OTHERS and bool(keys & _TELLING) and len(keys & _FIELDS) * 2 > len(keys)
