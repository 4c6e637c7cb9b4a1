"""Reads the bytes of a job file, with one clear error for each way in which that can go wrong."""

from __future__ import annotations

from pathlib import Path

from launcher.diagnostics import Diagnostic, Span
from launcher.job.report import Report
from launcher.units import MIB

MAX_BYTES = MIB


def read_text(path: Path, report: Report) -> str | None:
    """Return the file's text, or None once `report` says why not."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        message, fix = _unreadable(path, error)
        report.take(Diagnostic(code="TL101", message=message, fix=fix))
        return None
    if len(data) > MAX_BYTES:
        message = f"the job file {path} is larger than {MAX_BYTES} bytes (1 MiB)"
        report.take(Diagnostic(code="TL101", message=message, fix="name the job file itself, and keep data out of it"))
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
                message=f"the job file is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}",
                fix="save the file as UTF-8",
                span=Span(str(path), line, column, line, column + 1),
            )
        )
        return None


def _unreadable(path: Path, error: OSError | ValueError) -> tuple[str, str]:
    if isinstance(error, FileNotFoundError):
        return f"the job file {path} does not exist", "name a job file that exists"
    if isinstance(error, IsADirectoryError):
        return f"{path} is a folder, not a job file", f"name the file in it, like {path / 'job.yaml'}"
    if isinstance(error, PermissionError):
        return f"the job file {path} may not be read by this user", f"run chmod a+r {path}"
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return f"the job file {str(path)!r} can't be read: {reason}", "name a job file that can be read"
