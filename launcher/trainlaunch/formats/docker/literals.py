"""Variables that a text itself gives one literal value, put in where it uses them.

What is set twice, in a branch or a loop, or by anything but a literal, stays a variable of unknown value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from trainlaunch.formats.docker.shell_lexer import Operator, Piece, Word, tokens

_USED = r"\$(?:(\w+)|\{(\w+)\}|\((\w+)\))"
_ALL_OF = r"\$\{(\w+)\[@\]\}"
_ASSIGNED = r"([A-Za-z_]\w*)(\+?=)"
_ARRAY = r"^[ \t]*([A-Za-z_]\w*)(\+?)=\(([^()]*)\)"
_OF_MAKE = r"^(?:override[ ]+|export[ ]+)?([A-Za-z_]\w*)[ \t]*([:?+]{0,2}=)[ \t]*([^\n#]*)"
_BRANCH_OF_MAKE = r"^[ \t]*(?:if(?:n?eq|n?def)\b|(else|endif)\b)"
_DECLARING = frozenset({"export", "local", "readonly", "declare", "typeset"})
_OPENS = frozenset({"if", "for", "while", "until", "case", "select", "{"})
_CLOSES = frozenset({"fi", "done", "esac", "}"})
_DEEPEST = 4


class Literals(NamedTuple):
    """Values by the names of their variables; `arrays` have several words each, `make` also reads `$(NAME)`."""

    values: Mapping[str, str]
    arrays: Mapping[str, tuple[str, ...]]
    make: bool = False

    def filled(self, stream: Iterator[Word | Operator]) -> Iterator[Word | Operator]:
        """Yield words with the values of their variables; one that stands unquoted alone may become several."""
        if not self.values and not self.arrays:
            yield from stream
            return
        for each in stream:
            if isinstance(each, Operator) or each.known:
                yield each
            else:
                yield from self._words(each)

    def _words(self, word: Word) -> Iterator[Word]:
        if len(word.pieces) == 1:
            several = self._several(word.pieces[0])
            if several is not None:
                piece = word.pieces[0]
                yield from (Word([_given(piece, text, quoted=True)]) for text in several)
                return
        yield Word([self._piece(each) for each in word.pieces])

    def _several(self, piece: Piece) -> tuple[str, ...] | None:
        """Return the words that an array, or an unquoted variable alone, becomes; None for any other piece."""
        if piece.known:
            return None
        listed = re.fullmatch(_ALL_OF, piece.text)
        if listed is not None:
            return self.arrays.get(listed[1])
        value = None if piece.quoted else self._value(piece.text)
        return None if value is None or re.search(r"[*?\[]", value) else tuple(value.split())

    def _piece(self, piece: Piece) -> Piece:
        value = None if piece.known else self._value(piece.text)
        if value is None or (not piece.quoted and len(value.split()) != 1):
            return piece
        return _given(piece, value, quoted=piece.quoted)

    def _value(self, text: str) -> str | None:
        match = re.fullmatch(_USED, text)
        if match is None or (match[3] and not self.make):
            return None
        return self.values.get(match[1] or match[2] or match[3])


NO_LITERALS = Literals({}, {})


def _given(piece: Piece, text: str, *, quoted: bool) -> Piece:
    return Piece(text, piece.start, piece.end, piece.start, True, quoted, True)


class _Found:
    """What is assigned so far: None for what is no single literal."""

    def __init__(self) -> None:
        self.words: dict[str, Word | None] = {}

    def add(self, name: str, word: Word | None) -> None:
        """Note one assignment of a variable."""
        before = self.words.get(name, word)
        same = before is not None and word is not None and before.text == word.text
        self.words[name] = word if same else None


def literals_of_shell(text: str, commands: Iterable[tuple[list[Word], list[Operator]]]) -> Literals:
    """Return the literals that the commands of a shell's text set at its outermost level."""
    if "$" not in text:
        return NO_LITERALS
    found = _Found()
    depth, before = 0, ""
    for words, operators in commands:
        first = words[0].text if words else ""
        opens = first in _OPENS or (len(words) == 1 and any(each.text == ")" for each in operators))
        depth += opens
        sure = depth == 0 and before not in {"&&", "||"}
        _take(words, found, sure=sure)
        depth -= first in _CLOSES and depth > 0
        ends = [each.text for each in operators if each.text in {"&&", "||", ";", "\n", "|", "&"}]
        before = ends[-1] if ends else before
    return Literals(_resolved(found.words), dict(_arrays(text)))


def _take(words: list[Word], found: _Found, *, sure: bool) -> None:
    first = words[0].text if words else ""
    if first in {"for", "read", "select", "mapfile", "readarray", "printf", "unset", "getopts"}:
        for each in words[1:]:
            if re.fullmatch(r"[A-Za-z_]\w*", each.text):
                found.add(each.text, None)
        return
    rest = [each for each in words[1:] if not each.text.startswith("-")] if first in _DECLARING else words
    for each in rest:
        match = re.match(_ASSIGNED, each.text)
        if match is None:
            break  # what stands in front of a command holds for that alone
        whole = first in _DECLARING or all(re.match(_ASSIGNED, other.text) for other in words)
        found.add(match[1], each if sure and whole and match[2] == "=" else None)


def _resolved(words: Mapping[str, Word | None]) -> dict[str, str]:
    """Return the values that are literals, or made of such alone."""
    values: dict[str, str] = {}
    for _ in range(_DEEPEST):
        for name, word in words.items():
            if word is None or name in values:
                continue
            pieces = [Literals(values, {})._piece(each._replace(quoted=True)) for each in word.pieces]
            if all(each.known for each in pieces):
                values[name] = "".join(each.text for each in pieces).partition("=")[2]
    return values


def _arrays(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each array that is set once, of words that are all literal."""
    found = [(match[1], match[2], match.span(3)) for match in re.finditer(_ARRAY, text, re.MULTILINE)]
    names = [name for name, _, _ in found]
    for name, more, (start, end) in found:
        words = [each for each in tokens(text, start, end) if isinstance(each, Word)]
        if not more and names.count(name) == 1 and all(each.known for each in words) and f"{name}+=" not in text:
            yield name, tuple(each.text for each in words)


def literals_of_make(text: str) -> Literals:
    """Return the variables of a Makefile that it sets once, outside of branches, to a literal."""
    found: dict[str, list[str | None]] = {}
    branches = [(match.start(), match[1]) for match in re.finditer(_BRANCH_OF_MAKE, text, re.MULTILINE)]
    for match in re.finditer(_OF_MAKE, text, re.MULTILINE) if "$" in text else ():
        depth = sum((-1 if word == "endif" else 0 if word else 1) for at, word in branches if at < match.start())
        sure = depth == 0 and match[2] in {"=", ":=", "::="}
        found.setdefault(match[1], []).append(match[3].strip() if sure else None)
    single = {name: given[0] for name, given in found.items() if len(given) == 1 and given[0] is not None}
    values = {name: value for name, value in single.items() if "$" not in value}
    for _ in range(_DEEPEST):
        for name, value in single.items():
            if name not in values:
                made = _put_in(value, values)
                values |= {name: made} if "$" not in made else {}
    return Literals({name: value for name, value in values.items() if "\\" not in value}, {}, make=True)


def _put_in(value: str, values: Mapping[str, str]) -> str:
    return re.sub(_USED, lambda it: values.get(it[1] or it[2] or it[3], it[0]), value)
