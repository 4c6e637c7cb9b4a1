"""Reads files that a text of the same repository names, or that lie beside it."""

from __future__ import annotations

from pathlib import Path

from trainlaunch.repository.regular_files import read_regular
from trainlaunch.repository.root import ITS_OWN
from trainlaunch.units import MIB


def own_text(path: Path, beside: Path) -> str:
    """Return the text of a file in the repository of `beside`, up to 4 MiB; empty where none can be read.

    What is not UTF-8 in it is replaced.
    """
    try:
        return read_regular(path, 4 * MIB).decode("utf-8-sig", errors="replace") if ITS_OWN.holds(path, beside) else ""
    except (OSError, ValueError):
        return ""
