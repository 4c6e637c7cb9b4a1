"""Writes YAML that every reader takes for the same values: PyYAML, Go's yaml.v2 and yaml.v3 (kubectl, Compose).

These readers disagree on bare scalars (`y`, `1e3`, `08`, `0o14`), so every string is double-quoted or a literal block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

# Line and paragraph separators, BOM and non-characters are folded, dropped or refused by one YAML reader or another;
# invisible and direction-changing characters would hide from a reviewer what the file says.
_HIDDEN = "\x7f-\xa0\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff\U000e0000-\U000e0fff"
_UNPRINTABLE = f"\x00-\x1f{_HIDDEN}"
_YAML_ESCAPED = f'["\\\\{_UNPRINTABLE}]'
_NOT_IN_BLOCK = f"[\x00-\x08\x0b-\x1f{_HIDDEN}]"  # a block holds tabs, and its lines end
_NOT_IN_COMMENT = f"[{_UNPRINTABLE}\ud800-\udfff]"  # a file's name may hold bytes that are no UTF-8
_NAMED_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_PLAIN_KEY = r"(?!(?i:y|n|yes|no|on|off|true|false|null)$)[A-Za-z_][A-Za-z0-9_-]*"

WIDTH = 120  # columns that a reviewer sees


class Quoted(str):
    """Text that is safe where the writer that made it says so; templates print nothing else."""

    __slots__ = ()


class Style(NamedTuple):
    """How values of several lines are laid out, in columns: `dash` is where a list stands under its key.

    Without `literal` a string of several lines is double-quoted.
    """

    step: int = 2
    dash: int = 2
    literal: bool = True


_OURS = Style()


def _is_plain(value: str) -> bool:
    """Whether a text is of ASCII's visible characters alone, as most are: the patterns take long to compile."""
    return value.isascii() and value.isprintable()


def yaml_string(value: str) -> Quoted:
    """Return a double-quoted YAML scalar on one line."""
    if _is_plain(value):
        return Quoted('"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"')
    return Quoted('"' + re.sub(_YAML_ESCAPED, _yaml_escape, value) + '"')


def _yaml_escape(match: re.Match[str]) -> str:
    char = match[0]
    point = ord(char)
    return _NAMED_ESCAPES.get(char) or (f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}")


def yaml_text(value: str, indent: int, step: int = 2) -> Quoted:
    """Return `value` as a literal block indented by `indent` columns, or double-quoted where a block can't hold it.

    `step` is how many of these columns it stands deeper than what it belongs to.
    """
    lines = value.removesuffix("\n").split("\n")
    if len(lines) < 2 or _has_hidden(value) or not lines[0].strip() or not lines[-1].strip():
        return yaml_string(value)
    # A first line with leading blanks hides where the block's own indentation ends.
    indicator = str(step) if lines[0][0] in " \t" else ""
    chomp = "" if value.endswith("\n") else "-"
    return Quoted("\n".join((f"|{indicator}{chomp}", *(" " * indent + line if line else "" for line in lines))))


def yaml_folded(value: str, indent: int, width: int = WIDTH, key: str = "") -> Quoted:
    """Return `value` on one line, or where that is wider than `width` as a folded block, which readers join again.

    The block is indented by `indent` columns, two more than its `key`, which is in quotes where it is named.
    """
    words = value.split(" ")
    wide = indent + len(value) + (len(key) + 4 if key else 0) > width
    if "" in words or not wide or _has_hidden(value) or "\n" in value or "\t" in value:
        return yaml_string(value)
    lines = [words[0]]
    for word in words[1:]:
        if indent + len(lines[-1]) + len(word) < width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return Quoted("\n".join((">-", *(" " * indent + line for line in lines))))


def yaml_block(value: object) -> Quoted:
    """Return mappings, lists and what is in them as YAML, one value a line, from column 0 on.

    Strings are double-quoted or literal blocks, keys bare where every reader takes them for a string. Raises TypeError
    for what has no YAML here. What is Quoted already is written as it is.
    """
    return Quoted("\n".join(block_lines(value, 0)))


def block_lines(value: object, indent: int, style: Style = _OURS) -> list[str]:
    """Return the lines of `yaml_block` from column `indent` on; raises TypeError as it does."""
    if _takes_lines(value) or (value and isinstance(value, (list, tuple))):
        return "\n".join(_lines(value, indent, style)).split("\n")
    return (" " * indent + _scalar(value, indent + style.step, style.step, style)).split("\n")


def yaml_inline(value: object) -> Quoted:
    """Return a value on one line, as it may stand inside brackets and braces; raises TypeError as `yaml_block` does."""
    if isinstance(value, Mapping):
        return Quoted(f"{{{', '.join(f'{_key(key)}: {yaml_inline(item)}' for key, item in value.items())}}}")
    if isinstance(value, (list, tuple)):
        return Quoted(f"[{', '.join(map(yaml_inline, value))}]")
    return Quoted(_scalar(value, 0, 2, _OURS._replace(literal=False)))


def _key(key: str) -> str:
    return key if isinstance(key, Quoted) or re.fullmatch(_PLAIN_KEY, key) else yaml_string(key)


def _lines(value: object, indent: int, style: Style) -> Iterator[str]:
    blanks = " " * indent
    if isinstance(value, Mapping):
        for key, item in value.items():
            if _takes_lines(item):
                yield f"{blanks}{_key(key)}:"
                yield from _lines(item, indent + (style.step if isinstance(item, Mapping) else style.dash), style)
            else:
                yield f"{blanks}{_key(key)}: {_scalar(item, indent + style.step, style.step, style)}"
    elif isinstance(value, (list, tuple)):
        for item in value:
            if _takes_lines(item):
                first, *others = _lines(item, indent + 2, style)
                yield f"{blanks}- {first[indent + 2 :]}"
                yield from others
            else:
                yield f"{blanks}- {_scalar(item, indent + 2, 2, style)}"


def _takes_lines(value: object) -> bool:
    """Whether a value takes lines of its own; a list of integers stands on one."""
    if isinstance(value, (list, tuple)):
        return not all(type(each) is int for each in value)
    return isinstance(value, Mapping) and bool(value)


def _scalar(value: object, indent: int, step: int, style: Style) -> str:
    if isinstance(value, Quoted):
        return value
    if isinstance(value, str):
        return yaml_text(value, indent, step) if style.literal else yaml_string(value)
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        from decimal import Decimal  # only a patch brings one

        text = f"{Decimal(repr(value)):f}"
        return text if "." in text else f"{text}.0"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(str, value))}]"
    if isinstance(value, Mapping):
        return "{}"
    raise TypeError(f"{value!r} has no YAML here")


def _has_hidden(value: str) -> bool:
    """Whether a character of `value` can't stand in a block; of ASCII text, as most are, that is told much faster."""
    if value.isascii():
        return not value.replace("\n", "").replace("\t", "").isprintable()
    return re.search(_NOT_IN_BLOCK, value) is not None


def comment(value: str) -> Quoted:
    """Return text for one comment line: what could end the line or hide in it is escaped."""
    return Quoted(value if _is_plain(value) else re.sub(_NOT_IN_COMMENT, _yaml_escape, value))
