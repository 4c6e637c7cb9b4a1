"""Reads the bytes of a job file or a policy, with one clear error for each way in which that can go wrong."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from trainlaunch.diagnostics import Diagnostic, Report, Span
from trainlaunch.did_you_mean import closest
from trainlaunch.repository.regular_files import open_given, open_regular
from trainlaunch.units import KIB, MIB

MAX_BYTES = MIB
_USUAL_BYTES = 16 * KIB  # that most files have not


def read_text(path: Path, report: Report, noun: str = "job file") -> str | None:
    """Return the text of a file, which `noun` calls, or None once `report` says why not."""
    try:
        with (open_given if noun == "job file" else open_regular)(path) as file:
            data = read_at_most(file, MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        message, fix = _unreadable(path, error, noun)
        report.take(Diagnostic(code="TL101", message=message, fix=fix))
        return None
    if len(data) > MAX_BYTES:
        message = f"the {noun} {path} is larger than {MAX_BYTES} bytes (1 MiB)"
        report.take(Diagnostic(code="TL101", message=message, fix=f"name the {noun} itself, and keep data out of it"))
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        line = before.count("\n") + 1
        column = len(before) - (before.rfind("\n") + 1) + 1
        report.take(
            Diagnostic(
                code="TL101",
                message=f"the {noun} is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}",
                fix="save the file as UTF-8",
                span=Span(str(path), line, column, line, column + 1),
            )
        )
        return None


def read_at_most(file: BinaryIO, count: int) -> bytes:
    """Return the next bytes of a file, at most `count`; little first, since Python makes room for it all."""
    data = file.read(min(count, _USUAL_BYTES))
    return data if len(data) < _USUAL_BYTES else data + file.read(count - len(data))


def _existing(path: Path, noun: str) -> str:
    """Return what to write for a file that does not exist: the name beside it that is nearest."""
    try:
        there = {each.stem: each for each in path.parent.iterdir() if each.suffix in {".yaml", ".yml"}}
    except OSError:
        there = {}
    close = closest(path.stem, (stem for stem in there if not stem.endswith(".lock")))
    if close:
        return f"write {there[close]}"
    import shlex  # only on the way to an error

    draft = f", or write one: `trainlaunch init train.py --write-to {shlex.quote(str(path))}`"
    return f"name a {noun} that exists{draft * (noun == 'job file')}"


def _unreadable(path: Path, error: OSError | ValueError, noun: str) -> tuple[str, str]:
    if isinstance(error, FileNotFoundError):
        return f"the {noun} {path} does not exist", _existing(path, noun)
    if isinstance(error, IsADirectoryError):
        return f"{path} is a folder, not a {noun}", f"name the file in it, like {path / 'job.yaml'}"
    if isinstance(error, PermissionError):
        return f"the {noun} {path} may not be read by this user", f"run `chmod a+r {path}`"
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return f"the {noun} {str(path)!r} can't be read: {reason}", f"name a {noun} that can be read"
