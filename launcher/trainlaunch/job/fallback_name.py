"""What still names the runs of a job file that is no job any more: they are found and ended all the same."""

from __future__ import annotations

import re
from pathlib import Path

from trainlaunch.diagnostics import Report
from trainlaunch.repository.root import Reach
from trainlaunch.targets import TARGETS
from trainlaunch.yamltree.text_file import read_text

_WORD = r"""(["']?)([a-z0-9](?:[-a-z0-9]{{0,61}}[a-z0-9])?)\1[ \t]*(?:\#.*)?"""
_LINE = r"""^["']?{}["']?[ \t]*:[ \t]+""" + _WORD + "$"
_NAME = re.compile(_LINE.format("name"), re.MULTILINE)
_TARGET = re.compile(_LINE.format("target"), re.MULTILINE)


def name_and_target(path: Path, reach: Reach) -> tuple[str | None, str | None]:
    """Return what the top-level lines `name:` and `target:` say; None where none does, or where several disagree."""
    text = ((read_text(path, Report()) if reach.holds(path, path) else None) or "").replace("\r", "\n")
    name, target = _only(_NAME, text), _only(_TARGET, text)
    return name, target if target in TARGETS else None


def _only(line: re.Pattern[str], text: str) -> str | None:
    found = {each[2] for each in line.finditer(text)}
    return found.pop() if len(found) == 1 else None
