"""Syntax errors of YAML in plain words, the same from libyaml and from PyYAML's own parser."""

from __future__ import annotations

import re
from typing import Any

import yaml

from trainlaunch.diagnostics import Diagnostic, Span

# (words of the parser's problem, message, fix); the first that matches wins. {open} is where the parser started from.
_PLAIN_WORDS = (
    (
        "mapping values are not allowed",
        "a second ': ' stands where no key can be",
        "put the value in double quotes, or correct this line's indentation",
    ),
    (
        "found unexpected end of stream",
        "the quote opened at {open} is never closed",
        "close the quote",
    ),
    (
        "unexpected document separator",
        "the quote opened at {open} is never closed",
        "close the quote",
    ),
    (
        "parsing a flow node",
        "a value or a closing bracket is missing here",
        "write the value, or close the bracket that is open",
    ),
    (
        "nesting depth",
        "values are nested too deep",
        "delete the nesting",
    ),
    (
        r"expected ',' or '\]'",
        "the list opened with [ at {open} lacks a comma or its ]",
        "write a comma between values and ] after the last",
    ),
    (
        r"expected ',' or '\}'",
        "the mapping opened with {{ at {open} lacks a comma or its }}",
        "write a comma between values and }} after the last",
    ),
    (
        "expected ':'",
        "this is not a key with a value",
        "write key: value, with a colon and a space",
    ),
    (
        "unknown escape character",
        "a backslash in double quotes starts no escape that YAML knows",
        "write the string in single quotes, or double the backslash",
    ),
    (
        "sequence entries are not allowed",
        "a list starts on the line of its key",
        "start the list on the next line, or write [a, b]",
    ),
    (
        "expected <document start>|expected '<document start>'",
        "text follows the end of the document",
        "delete the line ... before it",
    ),
    (
        "expected alphabetic or numeric character",
        "& or * stands without a name",
        "write a name after it, or put the value in double quotes",
    ),
    (
        "expected (?:a )?comment or (?:a )?line break",
        "text follows | or > on its line",
        "start the text on the next line, indented",
    ),
    (
        "character escape code",
        "an escape in double quotes names no character",
        "delete the escape",
    ),
    (
        "hex(?:a)?decimal number",
        "an escape in double quotes lacks hexadecimal digits",
        "write \\xNN, \\uNNNN or \\UNNNNNNNN, or double the backslash",
    ),
    (
        "parsing a block collection|expected '-' indicator|expected <block end>, but found '<block sequence",
        "list items and other lines mix at this indentation",
        "indent the items of one list alike, each with '- '",
    ),
    (
        "expected key|expected <block end>|expected the node content|expected node content",
        "this line fits no key or list above it",
        "indent it like its neighbours, and put a value with quotes inside in quotes as a whole",
    ),
    (
        "tag handle|tag directive|parsing a tag|scanning a tag",
        "a tag (!) is not read",
        "delete it, or put the value in double quotes",
    ),
)
_NO_SPACE = re.compile(r"\s*[A-Za-z_]\w*:(?=[^\s:/\\])")
# For these the parser gives up lines after the mistake; the place where it started is the one to look at.
_POINTS_PAST_IT = "unexpected end of stream|unexpected document separator|expected ':'"


def syntax_error(error: yaml.MarkedYAMLError, text: str, file: str) -> Diagnostic:
    """Return the diagnostic of a YAML syntax error, at the place where the parser gave up."""
    mark = error.problem_mark or error.context_mark
    if error.context_mark and re.search(_POINTS_PAST_IT, str(error.problem)):
        mark = error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    span = Span(file, line, column, line, column + 1)
    lines = re.split(r"\r\n|\r|\n", text)
    source = lines[line - 1] if line <= len(lines) else ""
    above = lines[line - 2] if 2 <= line <= len(lines) else ""
    if "mapping values are not allowed" in str(error.problem) and (key := _NO_SPACE.match(above)):
        place = Span(file, line - 1, len(key[0]), line - 1, len(key[0]) + 1)
        fix = f"write {key[0].strip()} {above[len(key[0]) :].strip()}"
        return Diagnostic(code="TL102", message="no space follows the colon of a key", fix=fix, span=place)
    message, fix = (
        _tab(source, column) or _bad_start(error, source, column) or _brace(error, source, column) or _words(error)
    )
    return Diagnostic(code="TL102", message=message, fix=fix, span=span)


def _tab(source: str, column: int) -> tuple[str, str] | None:
    indentation = source[: len(source) - len(source.lstrip(" \t"))]
    at_problem = source[column - 1 : column] == "\t"
    if "\t" not in indentation and not at_problem:
        return None
    return "a tab stands where YAML counts spaces", "replace the tab with spaces"


def _bad_start(error: yaml.MarkedYAMLError, source: str, column: int) -> tuple[str, str] | None:
    if "cannot start any token" not in str(error.problem):
        return None
    character = source[column - 1 : column]
    return f"a value can't start with {character}", f'put the value in double quotes: "{character}…"'


def _brace(error: yaml.MarkedYAMLError, source: str, column: int) -> tuple[str, str] | None:
    """Return what is wrong with `[--size={batch_size}]`: inside brackets a brace starts a mapping."""
    before = re.search(r"[^\s,\[\]{}\"']+$", source[: column - 1])
    inside = re.match(r"\{[^{}]*\}", source[column - 1 :])
    if not before or not inside or "expected ','" not in str(error.problem):
        return None
    return "a brace stands in a value without quotes", f'put it in double quotes: "{before[0]}{inside[0]}"'


def _words(error: yaml.MarkedYAMLError) -> tuple[str, str]:
    problem = f"{error.context or ''} {error.problem or ''}"
    for words, message, fix in _PLAIN_WORDS:
        if re.search(words, problem):
            return message.format(open=_place(error.context_mark)), fix.format()
    return f"the text is no YAML: {error.problem}", "correct this line"


def _place(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}" if mark else "an earlier line"
