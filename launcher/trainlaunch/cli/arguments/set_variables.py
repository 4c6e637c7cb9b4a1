"""The variables that -e and --env-file set, as `docker run` reads them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import UsageError


def set_variables(given: Sequence[str], file: Path | None) -> dict[str, str]:
    """Return the variables of --env-file, then those of -e: NAME alone is this shell's. Raises UsageError."""
    found: dict[str, str] = {}
    lines: Iterable[str] = ()
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as cause:
            reason = getattr(cause, "strerror", None) or cause
            raise UsageError(
                [Diagnostic("TL118", f"--env-file {file} can't be read: {reason}", "name a file")]
            ) from cause
    kept = (each.strip() for each in lines)
    for each in (*(line for line in kept if line and not line.startswith("#")), *given):
        name, equals, value = each.partition("=")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise UsageError(
                [Diagnostic("TL118", f"{each.partition('=')[0]} is no variable", "write NAME=VALUE, or NAME")]
            )
        if equals:
            found[name] = value
        elif name in os.environ:
            found[name] = os.environ[name]
    return found
