"""How grave it is that a text can't be read: nobody's mistake where a template or this reader is the cause."""

from __future__ import annotations

import re
from pathlib import PurePath

from trainlaunch.diagnostics import Severity
from trainlaunch.lint.file_kinds import PIPELINE, READ_BY_NAME, STARTS_YAML
from trainlaunch.lint.unused_files import is_on_purpose

_PLACEHOLDER = re.compile(r"\{\{|\{%|<%|\[\[|(?<!\w)@\w+@(?!\w)|__[A-Z_]+__|%\(\w+\)s")
_FILLED = re.compile(r"%[A-Z][A-Z_]+%|(?<![$\w])\{[A-Za-z_]\w*\}|(?<![\w+%])%s")  # by sed, by Python's str.format
# What a reader fills in, where a value begins, which alone stops YAML: [PROJECT]-media, *PROJECT*.
_TO_FILL = re.compile(
    r"^[ \t]*(?:-[ \t]+)?(?:[\w.-]+:[ \t]+)?(?:\[[A-Z][A-Z0-9_]+\][\w./-]|\*[A-Z][A-Z0-9_]+\*)", re.MULTILINE
)
# A line that another program, or a reader, puts something in the place of.
_BLOCK = re.compile(r"^[ \t]*(?:\$\w+|\$\{\w+\}|<[\w -]+>|\.\.\.)[ \t]*$", re.MULTILINE)
# What this reader refuses and Compose's or kubectl's takes.
_LIMITS = ("values are nested", "the text stands for", "a character that YAML", "found unexpected ':'")


def gravity_of_broken(name: str, text: str, message: str, line: int, *, told: bool) -> Severity:
    """Return how grave it is that a text can't be read: an error for a workflow or a Compose file, found by its name.

    So it is on stdin, and where the caller has `told` its kind. A manifest or pipeline may be a template of a kind that
    nobody knows here, and is a warning. A template's braces, a fixture that is broken on purpose, and limits of
    this reader are nobody's mistake.
    """
    path = PurePath(name)
    named = READ_BY_NAME.fullmatch(path.name) is not None
    read = told or named or name == "-"
    yaml = path.suffix != ".json" and STARTS_YAML.match(text)  # JSON may have comments, and its reader takes them
    if is_on_purpose(name) or any(each in message for each in _LIMITS) or not (read or yaml):
        return Severity.INFO
    if path.parts[-3:-1] == (".github", "workflows"):
        return Severity.INFO if re.search(r"(?<!\$)\{\{|\{%|<%", text) else Severity.ERROR
    near = "\n".join([each for each in text.split("\n")[:line] if each.strip()][-3:])
    taken = "unknown escape" in message and "\\'" in near and path.name != PIPELINE  # by Go's reader
    filled = _FILLED.search(near) or _TO_FILL.search(near) or (_BLOCK.search(near) and not named)
    if taken or filled or _PLACEHOLDER.search(text):
        return Severity.INFO
    return Severity.ERROR if read else Severity.WARNING
