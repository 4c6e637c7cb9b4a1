"""Shows text that others wrote (containers, pods, labels, files, engines): what a terminal or CI obeys is spelled out.

A control character or one that turns the direction of writing round is written as its escape; the start of a workflow
command of CI (`::error::` at a line's start, `##[`, `##vso[`, `##teamcity[` anywhere) loses its first character to one.
"""

from __future__ import annotations

import re

_KEPT = frozenset("\n\t")
MOST_SHOWN = 300
_COMMAND = r"^([^\S\n]*):(?=:)|#(?=#(?:\[|vso\[|teamcity\[))"


class SafeText(str):
    """Text that is fit to be shown as it stands; its colours are ours."""

    __slots__ = ()


def sanitize(text: str) -> SafeText:
    """Return a text, of one line or several, with what is not to be obeyed spelled out; SafeText stays as it is."""
    if isinstance(text, SafeText):
        return text
    plain = text if text.isprintable() else "".join(each if _shows(each) else escaped(each) for each in text)
    return SafeText(re.sub(_COMMAND, _spelled, plain, flags=re.MULTILINE) if "::" in plain or "##" in plain else plain)


def one_line(text: str) -> SafeText:
    """Return a text as it may stand within a line of ours: ends of lines and tabs are spelled out too."""
    return SafeText(sanitize(text.replace("\n", "\\n").replace("\t", "\\t")))


def shown(text: str) -> SafeText:
    """Return a line of a job's as it may stand in one of ours: no control characters, at most about 300 characters."""
    clean = one_line(text)
    return clean if len(clean) <= MOST_SHOWN else SafeText(f"{clean[: MOST_SHOWN - 60]} … {clean[-60:]}")


def escaped(character: str) -> str:
    """Return a character as an escape: a backslash, x, u or U, and its number in hex digits."""
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def shorten(name: str) -> str:
    """Return a name for a message, cut after 60 characters and on one line."""
    return name if len(name) <= 60 and name.isprintable() else ascii(name[:59])


def _shows(character: str) -> bool:
    return character.isprintable() or character in _KEPT


def _spelled(found: re.Match[str]) -> str:
    return f"{found[1] or ''}{escaped(found[0][-1])}"
