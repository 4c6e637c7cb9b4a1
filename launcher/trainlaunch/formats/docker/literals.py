"""What a shell surely gets to, and variables that a text itself gives one literal value, put in where it uses them.

What is set twice, or may be set by anything but a literal, stays a variable of unknown value.
"""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from trainlaunch.formats.docker.shell_lexer import Operator, Piece, Word, assignment, tokens

_USED = r"\$(?:(\w+)|\{(\w+)\}|\((\w+)\))"
_ALL_OF = r"\$\{(\w+)\[@\]\}"
_NAMED = re.compile(r"[-+!]*([A-Za-z_]\w*)")
_ARRAY = r"^[ \t]*([A-Za-z_]\w*)=\(([^()]*)\)"
_OF_MAKE = r"^(?:override[ ]+|export[ ]+)?([A-Za-z_]\w*)[ \t]*([:?+]{0,2}=)[ \t]*((?:\\\n|[^\n#])*)"
_OF_TARGET = r"^[^\s#:=][^\n#:=]*:[ \t]*(?:override[ ]+|export[ ]+)?([A-Za-z_]\w*)[ \t]*[:?+]{0,2}="
_INCLUDES = r"^[ \t]*[-s]?include\b"
_BRANCH_OF_MAKE = r"^[ \t]*(?:if(?:n?eq|n?def)\b|(else|endif)\b)"
_DECLARING = frozenset({"export", "local", "readonly", "declare", "typeset"})
_SOURCING = frozenset({".", "source", "eval"})
_TOUCHING = frozenset({"for", "select", "read", "mapfile", "readarray", "printf", "unset", "getopts", "let"})
_OPENS = frozenset({"if", "while", "until", "{", "for", "select", "case"})
_IN_FRONT = frozenset({"if", "while", "until", "{", "then", "else", "elif", "do", "!", "time", "function"})
_LOOPS = frozenset({"while", "until", "select", "for", "each"})
_CLOSES = {"fi": {"if"}, "done": _LOOPS, "esac": {"case"}, "}": {"{"}}
_JOINS = frozenset({"&&", "||", "|", "|&"})
# Programs that ask nothing with whose answer a text goes on: where one fails, something is broken.
_STEPS = frozenset({
    *("cd", "mkdir", "cp", "chmod", "tar", "unzip", "export", "set", "ulimit", "source", ".", "echo", "sleep"),
    *("pip", "pip3", "conda", "uv", "apt-get", "apt", "python", "python3", "torchrun", "accelerate", "deepspeed"),
})  # fmt: skip
_ASKING = frozenset({"-c", "show", "check", "list"})  # words of theirs
# Texts of the shell's own and of environments, which set variables of their own names.
_HARMLESS = re.compile(
    r"(?:^|/)(?:activate|conda\.sh|\.?bashrc|\.?profile|modules?\.sh)$"
    r"|\$\((?:minikube|docker-machine|ssh-agent|conda|micromamba)\b"
)
_DEEPEST = 4
_LONGEST = 10_000  # characters of what variables in variables become


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


class Step(NamedTuple):
    """A command without the shell's own words in front, and whether a shell surely gets to it.

    `inside` is the innermost of what is open around it, empty for none; `behind` and `end` are the operators around it.
    """

    words: list[Word]
    sure: bool
    inside: str
    behind: str
    end: str


class Course:
    """The way of a shell through a text.

    It surely gets to what begins a list or follows steps alone, outside of everything but a `for` over literals.
    """

    def __init__(self) -> None:
        self.opened: list[str] = []  # "each" is such a `for`; what is closed wrongly adds "?", which nothing closes
        self._sure, self._end = True, ""

    def step(self, words: list[Word], operators: list[Operator]) -> Step:
        """Return the next command of a text, as `commands` gives it."""
        behind, end = self._end, operators[-1].text if operators else ""
        if behind in _JOINS and not words and end in {"\n", "\r\n"}:  # the list goes on
            return Step([], False, "", behind, end)
        rest = self._open(words)
        first = rest[0].text if rest else ""
        inside = self.opened[-1] if self.opened else ""
        step = Step(rest, self._is_sure() and first not in {"for", *_CLOSES}, inside, behind, end)
        if first in _CLOSES:
            self._close(_CLOSES[first])
        if end == "(":
            self.opened.append("((" if behind == end and not words else end)
        elif end == ")" and self.opened[-1:] != ["case"]:  # of which it ends a pattern
            self._close({"(", "(("})
        elif self.opened[-1:] in ([], ["each"]):
            goes_on = end == "&&" and self._sure and _is_step(rest) and words[0].text != "!"
            self._sure = goes_on or end not in _JOINS
        self._end = end
        return step

    def _is_sure(self) -> bool:
        return self._sure and self.opened[-1:] in ([], ["each"])

    def _open(self, words: list[Word]) -> list[Word]:
        """Open what the first words of a command do, and return those behind them."""
        at = 0
        while at < len(words) and words[at].text in _IN_FRONT:
            if words[at].text in _OPENS:
                self.opened.append(words[at].text)
            at += 1 + (words[at].text == "function")
        rest = words[at:]
        first = rest[0].text if rest else ""
        if first in _OPENS:
            over = rest[3:] if [each.text for each in rest[2:3]] == ["in"] else []
            each = first == "for" and self._is_sure() and over and all(word.known for word in over)
            self.opened.append("each" if each else first)
        return rest

    def _close(self, kinds: Collection[str]) -> None:
        if self.opened and self.opened[-1] in kinds:
            self.opened.pop()
        else:
            self.opened.append("?")


def _behind_assignments(words: list[Word]) -> list[Word]:
    return [*itertools.dropwhile(lambda each: assignment(each.text), words)]


def _is_step(words: list[Word]) -> bool:
    texts = [each.text for each in _behind_assignments(words)]
    return bool(texts) and posixpath.basename(texts[0]) in _STEPS and _ASKING.isdisjoint(texts)


class _Found:
    """What is assigned so far, None for what is no single literal; others may have changed the first `lost` of it."""

    def __init__(self) -> None:
        self.words: dict[str, Word | None] = {}
        self.lost = 0

    def add(self, name: str, word: Word | None) -> None:
        """Note one assignment of a variable."""
        before = self.words.get(name, word)
        same = before is not None and word is not None and before.text == word.text
        self.words[name] = word if same else None


def literals_of_shell(text: str, commands: Iterable[tuple[list[Word], list[Operator]]]) -> Literals:
    """Return the literals that the commands of a shell's text set where it surely gets to."""
    if "$" not in text:
        return NO_LITERALS
    found, course = _Found(), Course()
    for words, operators in commands:
        step = course.step(words, operators)
        _take(step, found)
        if course.opened[:1] == ["{"] and _sets_any(_behind_assignments(step.words)):  # a function, called anywhere
            return NO_LITERALS
    kept = dict(itertools.islice(found.words.items(), found.lost, None))
    arrays = {name: words for name, words in _arrays(text) if kept.pop(name, None) is not None}
    return Literals(_resolved(kept), arrays)


def _sets_any(words: list[Word]) -> bool:
    """Return whether a command may set any variable, by a text or a word that isn't known."""
    first = words[0].text if words else ""
    if first in _SOURCING and any(_HARMLESS.search(each.text) for each in words[1:]):
        return False
    named = (each.known or assignment(each.text) for each in words)
    return first in _SOURCING or (first in _DECLARING and not all(named))


def _take(step: Step, found: _Found) -> None:
    """Note what a command assigns, and what it may change otherwise."""
    rest = _behind_assignments(step.words)
    first = rest[0].text if rest else ""
    if _sets_any(rest):
        found.lost = len(found.words)
    if first in _TOUCHING or step.inside == "((":
        matched = _NAMED.match if step.inside == "((" else _NAMED.fullmatch
        for match in filter(None, (matched(each.text) for each in step.words)):
            found.add(match[1], None)
        return
    declares = first in _DECLARING
    # What stands in front of a command holds for that alone.
    sure = step.sure and (declares or not rest) and step.end not in {"|", "|&", "&"}
    for each in step.words if declares else step.words[: len(step.words) - len(rest)]:
        assigned = assignment(each.text)
        if assigned is not None:
            again = step.end == "(" and assigned[1] in found.words
            found.add(assigned[1], each if sure and assigned[2] == "=" and not again else None)


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
    """Yield each array that is set to words that are all literal."""
    for match in re.finditer(_ARRAY, text, re.MULTILINE):
        words = [each for each in tokens(text, *match.span(2)) if isinstance(each, Word)]
        if all(each.known for each in words):
            yield match[1], tuple(each.text for each in words)


def literals_of_make(text: str) -> Literals:
    """Return the variables of a Makefile that it sets once, outside of branches, to a literal."""
    if "$" not in text:
        return Literals({}, {}, make=True)
    found: dict[str, list[str | None]] = {}
    included = re.search(_INCLUDES, text, re.MULTILINE)
    branches = [(match.start(), match[1]) for match in re.finditer(_BRANCH_OF_MAKE, text, re.MULTILINE)]
    for match in re.finditer(_OF_MAKE, text, re.MULTILINE):
        depth = sum((-1 if word == "endif" else 0 if word else 1) for at, word in branches if at < match.start())
        # A default of options, or an empty one, is there for others to set.
        default = match[2] == "?=" and not included and re.match(r"[^-\s]", match[3]) is not None
        sure = depth == 0 and (match[2] in {"=", ":=", "::="} or default)
        found.setdefault(match[1], []).append(re.sub(r"\\\n[ \t]*", " ", match[3]).strip() if sure else None)
    for match in re.finditer(_OF_TARGET, text, re.MULTILINE):
        found.setdefault(match[1], []).append(None)
    single = {name: given[0] for name, given in found.items() if len(given) == 1 and given[0] is not None}
    values = {name: value for name, value in single.items() if "$" not in value}
    for _ in range(_DEEPEST):
        for name, value in single.items():
            if name not in values:
                made = _put_in(value, values)
                values |= {name: made} if "$" not in made and len(made) < _LONGEST else {}
    return Literals({name: value for name, value in values.items() if "\\" not in value}, {}, make=True)


def _put_in(value: str, values: Mapping[str, str]) -> str:
    return re.sub(_USED, lambda it: values.get(it[1] or it[2] or it[3], it[0]), value)
