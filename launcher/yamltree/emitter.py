"""Writes YAML that every reader takes for the same values: PyYAML, Go's yaml.v2 and yaml.v3 (kubectl, Compose).

These readers disagree on bare scalars (`y`, `1e3`, `08`, `0o14`), so every string is double-quoted or a literal block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

# Line and paragraph separators, BOM and non-characters are folded, dropped or refused by one YAML reader or another;
# invisible and direction-changing characters would hide from a reviewer what the file says.
_HIDDEN = "\x7f-\xa0\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff\U000e0000-\U000e0fff"
_UNPRINTABLE = f"\x00-\x1f{_HIDDEN}"
_YAML_ESCAPED = re.compile(f'["\\\\{_UNPRINTABLE}]')
_NOT_IN_BLOCK = re.compile(f"[\x00-\x08\x0b-\x1f{_HIDDEN}]")  # a block holds tabs, and its lines end
_NOT_IN_COMMENT = re.compile(f"[{_UNPRINTABLE}\ud800-\udfff]")  # a file's name may hold bytes that are no UTF-8
_NAMED_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_PLAIN_KEY = re.compile(r"(?!(?i:y|n|yes|no|on|off|true|false|null)$)[A-Za-z_][A-Za-z0-9_-]*")


class Quoted(str):
    """Text that is safe where the writer that made it says so; templates print nothing else."""

    __slots__ = ()


def yaml_string(value: str) -> Quoted:
    """Return a double-quoted YAML scalar on one line."""
    return Quoted('"' + _YAML_ESCAPED.sub(_yaml_escape, value) + '"')


def _yaml_escape(match: re.Match[str]) -> str:
    char = match[0]
    point = ord(char)
    return _NAMED_ESCAPES.get(char) or (f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}")


def yaml_text(value: str, indent: int) -> Quoted:
    """Return `value` as a literal block indented by `indent` columns, or double-quoted where a block can't hold it."""
    lines = value.removesuffix("\n").split("\n")
    if len(lines) < 2 or _has_hidden(value) or not lines[0].strip() or not lines[-1].strip():
        return yaml_string(value)
    # A first line with leading blanks hides where the block's own indentation ends.
    indicator = "2" if lines[0][0] in " \t" else ""
    chomp = "" if value.endswith("\n") else "-"
    return Quoted("\n".join((f"|{indicator}{chomp}", *(" " * indent + line if line else "" for line in lines))))


def yaml_block(value: object) -> Quoted:
    """Return mappings, lists and what is in them as YAML, one value a line, from column 0 on.

    Strings are double-quoted or literal blocks, keys bare where every reader takes them for a string. Raises TypeError
    for what YAML has no word for here.
    """
    return Quoted("\n".join(_block_lines(value, 0)) or _flow(value, 0))


def _block_lines(value: object, indent: int) -> Iterator[str]:
    blanks = " " * indent
    if isinstance(value, Mapping):
        for key, item in value.items():
            name = key if _PLAIN_KEY.fullmatch(key) else yaml_string(key)
            if _takes_lines(item):
                yield f"{blanks}{name}:"
                yield from _block_lines(item, indent + 2)
            else:
                yield f"{blanks}{name}: {_flow(item, indent + 2)}"
    elif isinstance(value, (list, tuple)):
        for item in value:
            if _takes_lines(item):
                first, *others = _block_lines(item, indent + 2)
                yield f"{blanks}- {first[indent + 2 :]}"
                yield from others
            else:
                yield f"{blanks}- {_flow(item, indent + 2)}"


def _takes_lines(value: object) -> bool:
    """Whether a value takes lines of its own; a list of integers stands on one."""
    if isinstance(value, (list, tuple)):
        return not all(type(each) is int for each in value)
    return isinstance(value, Mapping) and bool(value)


def _flow(value: object, indent: int) -> str:
    if isinstance(value, str):
        return yaml_text(value, indent)
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
    return _NOT_IN_BLOCK.search(value) is not None


def comment(value: str) -> Quoted:
    """Return text for one comment line: what could end the line or hide in it is escaped."""
    return Quoted(_NOT_IN_COMMENT.sub(_yaml_escape, value))
