"""Words of a shell text with their places: quotes taken off, and what only a shell could work out marked unknown.

Nothing is run or expanded. A text may be anything: what ends too early ends at the end of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)((?:\[[^]]*\])?\+?=)")
_TOKEN = re.compile(
    r"""(?P<skip>[ \t]+|\\\n|(?<![^\s;&|()])\#[^\n]*)
      | (?P<carriage>\\?\r\n)
      | (?P<operator>\n|;;?&?|&&|\|\||\|&?|&(?!>)|[()])
      | (?P<redirect>(?:&>>?|(?<![^\s;&|()])\d+(?=[<>])|(?=[<>]))(?:>>|>&|<&|<<<|<<-?|<>|>\||>|<|(?<=>)))
      | '(?P<single>[^']*)(?:'|\Z)
      | (?P<double>")
      | \\(?P<escaped>[\s\S])
      | (?P<unknown>\$\{|\$\(|`|\$'|\$"|\$[A-Za-z_]\w*|\$[0-9@*\#?$!-]|[*?\[]
          |(?<![^\s;&|()=:])~[\w.-]*|\{(?:(?!\.\.)[^\s{}'"$,])*(?:,|\.\.)[^\s{}'"$]*\})
      | (?P<bare>[A-Za-z0-9_./:=@%+,-]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_IN_DOUBLE = re.compile(
    r"""(?P<end>") | \\(?P<escaped>[$`"\\]) | (?P<joined>\\\n)
      | (?P<unknown>\$\{|\$\(|`|\$[A-Za-z_]\w*|\$[0-9@*\#?$!-])
      | (?P<plain>[^"\\$`]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_NESTED = re.compile(r"""\\[\s\S]|'[^']*'|\$\{|\$\(|[(){}"`]|[^\\'$(){}"`]+|.""", re.DOTALL)


def assignment(word: str) -> re.Match[str] | None:
    """Return the name (1) and the operator (2) of a word that assigns; None for any other."""
    return _ASSIGNMENT.match(word)


class Piece(NamedTuple):
    """A part of a word: its text, its source from `start` to `end`, quotes included, and where the text itself begins.

    `known` is whether the text is what arrives; else it is the source. `quoted` is whether it stays one word.
    `filled` is whether another place gave it, so that its characters have no places of their own here.
    """

    text: str
    start: int
    end: int
    inner: int
    known: bool = True
    quoted: bool = False
    filled: bool = False


class Word:
    """A word of a command; its value is `text`, in which unknown parts stand as the source has them."""

    __slots__ = ("end", "known", "pieces", "start", "text")

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = pieces
        self.text = "".join(each.text for each in pieces)
        self.known = all(each.known for each in pieces)
        self.start, self.end = pieces[0].start, pieces[-1].end

    @property
    def opaque(self) -> bool:
        """Whether the word may be none, one or several, as an unquoted variable is."""
        return all(not each.known and not each.quoted for each in self.pieces)

    @property
    def marked(self) -> str:
        """The value with each unknown part in `<>`."""
        return "".join(each.text if each.known else f"<{each.text}>" for each in self.pieces)

    def part(self, first: int, last: int) -> tuple[int, int, bool]:
        """Return where characters `first` to `last` of the text stand in the source, and whether all are known."""
        if (first, last) == (0, len(self.text)):
            return self.start, self.end, self.known
        start = end = -1
        known, offset = True, 0
        for piece in self.pieces:
            past = offset + len(piece.text)
            if first <= past and offset <= last:
                escape = piece.filled or (len(piece.text) == 1 and piece.inner > piece.start and not piece.quoted)
                known = known and (piece.known or first == past or last == offset)
                if start < 0 and (first < past or first == last):
                    whole = escape or (first == offset and last == len(self.text))
                    start = piece.start if whole else piece.inner + first - offset
                if last > offset:
                    end = piece.end if escape or not piece.known else min(piece.inner + last - offset, piece.end)
            offset = past
        if start < 0:  # nothing, behind the last character
            start = end = self.end
        if last == len(self.text) and start in {each.start for each in self.pieces}:
            end = self.end
        return start, max(start, end), known


class Operator(NamedTuple):
    """What stands between words: the end of a command, a pipe, a redirection, a bracket, a line end with CR."""

    text: str
    start: int
    end: int


def tokens(text: str, start: int = 0, end: int | None = None) -> Iterator[Word | Operator]:
    """Yield the words and operators of `text` between two offsets; bodies of here-documents are left out."""
    at, stop = start, len(text) if end is None else end
    pieces: list[Piece] = []
    waiting: list[str] = []  # here-documents whose body begins at the next line
    here = ""
    while at < stop:
        match = _matched(_TOKEN, text, at, stop)
        kind = match.lastgroup or ""
        if kind in {"skip", "carriage", "operator", "redirect"}:
            if pieces and not (kind == "skip" and match[0] == "\\\n"):
                word, pieces = Word(pieces), []
                if here:
                    waiting.append(("-" if here == "<<-" else "") + word.text)
                    here = ""
                yield word
            at = match.end()
            if kind != "skip":
                yield Operator(match[0], match.start(), at)
                here = match[0] if match[0] in {"<<", "<<-"} else ""
            if waiting and match[0].endswith("\n") and kind in {"operator", "carriage"}:
                at, waiting = _behind_documents(text, at, stop, waiting), []
            continue
        at = _take(text, match, stop, pieces)
    if pieces:
        yield Word(pieces)


def _matched(pattern: re.Pattern[str], text: str, at: int, stop: int) -> re.Match[str]:
    match = pattern.match(text, at, stop)
    if match is None:  # the last alternative of each pattern takes any character
        raise AssertionError(f"nothing matches at {at}")
    return match


def _take(text: str, match: re.Match[str], stop: int, pieces: list[Piece]) -> int:
    """Add a token's pieces to a word and return where the next token begins."""
    (start, end), kind = match.span(), match.lastgroup
    if kind == "bare":
        pieces.append(Piece(match[0], start, end, start))
    elif kind == "single":
        pieces.append(Piece(match["single"], start, end, start + 1, True, True))
    elif kind == "escaped":
        pieces.append(Piece(match["escaped"], start, end, start + 1))
    elif kind == "double":
        return _double(text, start, stop, pieces)
    else:
        end = _behind(text, start, end, stop)
        pieces.append(Piece(text[start:end], start, end, start, known=False, quoted=match[0] in {"$'", '$"'}))
    return end


def _double(text: str, start: int, stop: int, pieces: list[Piece]) -> int:
    """Add what stands in double quotes from `start` on, and return where they end."""
    at, first = start + 1, len(pieces)
    while at < stop:
        match = _matched(_IN_DOUBLE, text, at, stop)
        kind, begin, at = match.lastgroup, at, match.end()
        if kind == "end":
            break
        if kind == "unknown":
            at = _behind(text, begin, at, stop)
            several = text[begin:at] == "$@" or "[@]" in text[begin:at] or text.startswith("${@", begin)
            pieces.append(Piece(text[begin:at], begin, at, begin, known=False, quoted=not several))
        elif kind == "escaped":
            pieces.append(Piece(match["escaped"], begin, at, begin + 1))
        elif kind == "plain":
            pieces.append(Piece(match[0], begin, at, begin, quoted=True))
    if len(pieces) == first:
        pieces.append(Piece("", start, at, start + 1, quoted=True))
    else:
        pieces[first] = pieces[first]._replace(start=start)
        pieces[-1] = pieces[-1]._replace(end=at)
    return at


def _behind(text: str, start: int, end: int, stop: int) -> int:
    """Return where an expansion ends whose first characters are `start` to `end`."""
    opened = text[start:end]
    if opened in {"$'", '$"'}:
        quote = re.compile(rf"(?:[^\\{opened[1]}]|\\[\s\S])*{opened[1]}?").match(text, end, stop)
        return quote.end() if quote else stop
    closing = {"${": "}", "$(": ")", "`": "`"}.get(opened)
    if closing is None:
        return end
    stack, at = [closing], end
    while stack and at < stop:
        match = _matched(_NESTED, text, at, stop)
        at, part = match.end(), match[0]
        if part == stack[-1]:
            stack.pop()
        elif part in {"${", "$(", '"', "`"} or (part == "(" and stack[-1] == ")"):
            stack.append({"${": "}", "$(": ")", "(": ")"}.get(part, part))
    return at


def _behind_documents(text: str, at: int, stop: int, waiting: list[str]) -> int:
    """Return where the bodies of here-documents end, from where their lines begin."""
    for name in waiting:
        while at < stop:
            end = text.find("\n", at, stop)
            line, at = text[at : end if end >= 0 else stop], end + 1 if end >= 0 else stop
            if (line.lstrip("\t") if name.startswith("-") else line).rstrip("\r") == name.removeprefix("-"):
                break
    return at


def statements(text: str) -> Iterator[list[str]]:
    """Yield the words of each line or `;` of a script; operators and what a shell would expand stand in `<>`."""
    words: list[str] = []
    for each in tokens(text):
        if isinstance(each, Word):
            words.append(each.marked)
        elif each.text in {"\n", ";"}:
            if words:
                yield words
            words = []
        else:
            words.append(f"<{each.text}>")
    if words:
        yield words


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of all commands of a text, one behind the other."""
    return tuple(word for each in statements(text) for word in each)
