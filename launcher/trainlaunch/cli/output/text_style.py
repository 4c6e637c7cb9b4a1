"""How text stands on a stream: in colour or not, and on a terminal wrapped between words."""

from __future__ import annotations

import os
import re
from typing import NamedTuple, TextIO

MIN_COLUMNS = 40  # a narrower terminal wraps as it likes
_TO_PASTE = re.compile(r"`[^`\n]*`")
_SPACE = "\0"  # stands for one that no line ends at; text that is shown holds none


class TextStyle(NamedTuple):
    """`columns` is the width of a terminal, None where nothing is wrapped: in a file, a pipe, CI."""

    colour: bool = False
    columns: int | None = None


def style_of(stream: TextIO) -> TextStyle:
    """Return how text stands on one stream."""
    return TextStyle(coloured(stream), columns_of(stream))


def coloured(stream: TextIO) -> bool:
    """Return whether to colour one stream: NO_COLOR, then FORCE_COLOR, then whether it is a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty()


def columns_of(stream: TextIO) -> int | None:
    """Return the width of the terminal that a stream is, None where it is none or tells none."""
    if not stream.isatty():
        return None
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return None
    return columns if columns >= MIN_COLUMNS else None


def wrapped(text: str, columns: int | None, indent: int = 0) -> str:
    """Return a text whose lines have at most `columns` characters; further lines of one are indented.

    What stands in backticks is pasted into a shell, so it stays on one line, however long it is.
    """
    if columns is None or all(len(line) <= columns for line in text.split("\n")):
        return text
    whole = _TO_PASTE.sub(lambda found: found[0].replace(" ", _SPACE), text)
    return "\n".join(_filled(line, columns, indent) for line in whole.split("\n")).replace(_SPACE, " ")


def _filled(line: str, columns: int, indent: int) -> str:
    import textwrap  # few starts print a long line on a terminal

    if len(line) <= columns:
        return line
    further = " " * indent
    return textwrap.fill(line, columns, subsequent_indent=further, break_long_words=False, break_on_hyphens=False)
