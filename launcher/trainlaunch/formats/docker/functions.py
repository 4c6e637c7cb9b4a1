"""A script whose `docker run` is a function, and whose long words others print, as one line with each of them in it."""

from __future__ import annotations

import re
import shlex

END_OF_TEXT = "END_OF_TEXT"  # of each here-document
_BEGINS = re.compile(r"^docker_run\(\) \{\n", re.MULTILINE)
# A word in quotes may have any line, one that would end the function too.
_BODY = re.compile(r"""(?:(?<=\s)\#[^\n]*\n?|'[^']*'|\\[\s\S]|"[^"]*"|(?!^\})[^'"\\])*""", re.MULTILINE)
_CALL = "docker_run\n"
_PRINTER = re.compile(rf"^([a-z]+)\(\) \{{\n  cat <<'{END_OF_TEXT}'\n", re.MULTILINE)
_PRINTER_ENDS = f"\n{END_OF_TEXT}\n}}\n"
_PRINTS = re.compile(r"""'[^']*'|\\[\s\S]|"(\w+=)?\$\(([a-z]+)\)\"""")


def inlined(text: str) -> str:
    """Return what such a script runs, in its order, without functions; any other text as it is.

    A word that a function prints stands where it is asked for, without the end of its last line, as a shell has it.
    A function that is called and not there, or is there twice or for nothing, leaves the text as it is.
    """
    begins = _BEGINS.search(text)
    body = _BODY.match(text, begins.end()) if begins else None
    if begins is None or body is None or not text.startswith("}\n", body.end()) or not text.endswith(f"\n{_CALL}"):
        return text
    below = text[body.end() + 2 :].removesuffix(_CALL)
    rest, printed = _without_printers(below)
    asked = [match[2] for match in _PRINTS.finditer(body[0]) if match[2]]
    if sorted(asked) != sorted(name for name, _ in printed):
        return text
    texts = dict(printed)
    whole = _PRINTS.sub(lambda it: (it[1] or "") + shlex.quote(texts[it[2]].rstrip("\n")) if it[2] else it[0], body[0])
    return f"{text[: begins.start()]}{rest}{whole}"


def _without_printers(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a script without its functions that print a text, and of each its name and that text."""
    kept, found, at = "", [], 0
    for match in _PRINTER.finditer(text):
        end = text.find(_PRINTER_ENDS, match.end() - 1)
        if end < 0:  # nor has any after it an end
            break
        if match.start() >= at:
            kept += text[at : match.start()]
            found.append((match[1], text[match.end() : end]))
            at = end + len(_PRINTER_ENDS)
    return kept + text[at:], found
