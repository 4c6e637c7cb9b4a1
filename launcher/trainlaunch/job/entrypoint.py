"""ENTRYPOINTs that don't run what stands behind them: neither the preflight nor the job would start."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

_SHELL = re.compile(r"(?:ba|da|a|z|k)?sh")
_PYTHON = re.compile(r"python[\d.]*")
_PROGRAM_OPTION = {"shell": re.compile(r"-[a-zA-Z]*c[a-zA-Z]*"), "python": re.compile(r"-[a-zA-Z]*c")}
_FILES = {"shell": (".sh", ".bash"), "python": (".py",)}
_HANDS_ON = re.compile(r"\$[@*1]|\$\{[@*1]")  # a text that uses its arguments may run them


def drops_command(entrypoint: Sequence[str]) -> bool:
    """Return whether an ENTRYPOINT is a bare shell or Python, or one with `-c` and a text that uses no argument.

    It then takes the first word behind it as its own file or text, measured: `bash -c /bin/sh …` ends with 0 at once.
    """
    kind, options = _kind(entrypoint), list(entrypoint[1:])
    if not kind:
        return False
    while options and options[0].startswith(("-", "+")):
        option = options.pop(0)
        if option == "-m":
            return False
        if _PROGRAM_OPTION[kind].fullmatch(option):
            return not any(map(_HANDS_ON.search, options)) if kind == "shell" else True
    return not options


def lines_without(entrypoint: Sequence[str], command: Sequence[str] | None) -> str:
    """Return the line or lines to type in the job file that drop such an ENTRYPOINT and keep what it ran.

    `command` is the job's; one that only means something to the ENTRYPOINT gets its program in front.
    """
    dropped = "`image_entrypoint: []`"
    if not command or not _needs_program(entrypoint, command):
        return dropped
    import json  # only on the way to an error

    return f"{dropped} and `command: {json.dumps([*entrypoint, *command], ensure_ascii=False)}`"


def _kind(entrypoint: Sequence[str]) -> str:
    name = posixpath.basename(entrypoint[0]) if entrypoint else ""
    return "shell" if _SHELL.fullmatch(name) else "python" if _PYTHON.fullmatch(name) else ""


def _needs_program(entrypoint: Sequence[str], command: Sequence[str]) -> bool:
    """Whether the command starts with a file, an option or a text of the ENTRYPOINT's program, and is no program."""
    kind, first = _kind(entrypoint), command[0]
    if not kind:
        return False
    takes_text = _PROGRAM_OPTION[kind].fullmatch(entrypoint[-1]) is not None
    return (
        first.endswith(_FILES[kind])
        or first.startswith("-")
        or (takes_text and re.search(r"[\s(;]", first) is not None)
    )
