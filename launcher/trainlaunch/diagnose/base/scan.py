"""Reads a log of any length once, in constant memory, and keeps the first lines of each text that matters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from trainlaunch.diagnose.base.line_prefixes import unprefixed
from trainlaunch.diagnose.base.line_signs import GOES_ON, WORKS, is_enclosed, is_prose, is_quoted
from trainlaunch.diagnose.base.log_facts import Hit, LogFacts, Traceback, WentOn, is_chain, is_ignored, opens
from trainlaunch.diagnose.base.log_patterns import MAX_CHARACTERS, LogPattern, by_root
from trainlaunch.diagnose.base.word_search import Words

CHUNK_BYTES = 1 << 20
MAX_LINE = 1 << 18  # what has no line feed for longer is cut: a binary file, or a progress bar
MAX_OPEN = 64  # tracebacks of mixed ranks that are read at the same time
MAX_SHAPES = 1 << 16  # of lines that say nothing, by what is left without their digits
MAX_REPEATS = 256  # tracebacks that are known again by the shapes of their lines
MAX_TRIES = 20_000  # matches of one text, after which only its first are of interest
LAST_LINES = 12
MAX_NEW = 0.9  # of the lines of a part, above which the next parts are taken for new as well
PASSES = 16  # how many of them
PIECE_BYTES = 1 << 11
NEXT = 3  # lines in which a program says that it goes on
WATCHED = 12  # lines after one that says something, among which is one of a run that goes on
_DIGITS = b"0123456789"
_TOLD_BY_NUMBER = re.compile(
    rb"Xid|exitcode|rrno|% +/dev/shm|\(\d+\)|onnect(?:ing)? to|completion"
)  # lines that differ by nothing else


class _Open(NamedTuple):
    """A traceback that is being read, and how many lines of others it may wait for its next."""

    traceback: Traceback
    until: int


class Scanner:
    """Feed it bytes as they come, then ask for `facts`."""

    def __init__(self, texts: tuple[LogPattern, ...], source: str = "log") -> None:
        self._by_root = tuple((root.encode(), root, each) for root, each in by_root(texts).items())
        self._words = Words(root for root, _, _ in self._by_root)
        self._source = source
        self._rest = b""
        self._line = 0  # lines before _rest
        self._open: dict[str, _Open] = {}
        self._ended: dict[str, Traceback] = {}
        self._ignored: dict[str, int] = {}
        self._dull: set[bytes] = set()
        self._rooted: set[bytes] = set()  # what lines with a root look like that said something
        self._repeats: dict[bytes, list[tuple[list[bytes], Traceback | None]]] = {}
        self._said: list[int] = []  # lines that said something, as long as the lines after them are watched
        self._signless: set[bytes] = set()  # what lines without such a sign look like
        self._again = 0  # the last line of a traceback that was read before
        self._closed: Traceback | None = None
        self._remembered = 0
        self._new = False  # whether most lines of the last part, or piece, were unlike all before
        self._passes = 0  # parts that are taken for new before the next is asked
        self._facts = LogFacts()
        self._last = b""

    def feed(self, data: bytes) -> None:
        """Read the next bytes; a line may come in several parts."""
        for start in range(0, len(data), CHUNK_BYTES):
            part = self._rest + data[start : start + CHUNK_BYTES]
            end = part.rfind(b"\n") + 1
            if not end and len(part) > MAX_LINE:
                part, end = part + b"\n", len(part) + 1
                self._line -= 1  # the same line goes on
            self._rest = part[end:]
            if end:
                self._read(part[:end])

    def facts(self) -> LogFacts:
        """Return what was found in all that was fed; more may be fed afterwards."""
        if self._rest:
            rest, self._rest = self._rest, b""
            self._read(rest + b"\n")
        for owner in list(self._open):
            self._close(owner)
        self._facts.lines = self._line
        self._facts.last = tuple(self._last_lines())
        return self._facts

    def _read(self, part: bytes) -> None:
        """Read a part of whole lines; where most are new, those are not told from others."""
        if self._passes:
            self._passes -= 1
            self._read_new(part)
        else:
            self._read_piece(part)
            self._passes = PASSES * self._new
        self._last = (self._last + part[-MAX_CHARACTERS:])[-MAX_CHARACTERS:]

    def _read_new(self, part: bytes) -> None:
        """Read the pieces of a part that begin with a line that has a root, and pass over all between them."""
        at = 0
        for place in [*([0] if self._open else []), *sorted(self._words.places(part)), len(part)]:
            if place < at:
                continue
            start = part.rfind(b"\n", at, place) + 1 or at
            self._line += part.count(b"\n", at, start)
            at = start
            while at < len(part) and (self._open or at <= place):
                end = part.find(b"\n", max(at + PIECE_BYTES, place)) + 1 or len(part)
                self._read_piece(part[at:end])
                at = end

    def _read_piece(self, part: bytes) -> None:
        """Look at the lines of a piece that can matter, and pass over all others unread."""
        lines = part.split(b"\n")
        shapes = part.translate(None, _DIGITS).split(b"\n")
        lines.pop()
        at = 0
        for index in self._candidates(lines, shapes):
            while self._open and at < index:
                self._read_line(lines[at][:MAX_CHARACTERS], self._line + at + 1, candidate=False)
                at += 1
            if index < at:
                continue
            at = self._take(lines, shapes, index)
        while self._open and at < len(lines):
            self._read_line(lines[at][:MAX_CHARACTERS], self._line + at + 1, candidate=False)
            at += 1
        self._watch(lines, shapes)
        self._line += len(lines)

    def _watch(self, lines: list[bytes], shapes: list[bytes]) -> None:
        """Note the first line after each that said something that only a run prints that goes on."""
        before, end = self._line, self._line + len(lines)
        if self._again > before:
            self._said.append(self._again)  # of what stands there over and over its last
        said = sorted(set(self._said))
        for line, following in zip(said, [*said[1:], end + 1], strict=False):
            for number in range(max(line, before) + 1, min(line + WATCHED + 1, following, end + 1)):
                sign = self._sign(lines[number - before - 1], shapes[number - before - 1], number)
                if sign is not None:
                    self._facts.went_on.append(sign)
                    if number > line + NEXT:
                        break
        self._said = [each for each in said[-WATCHED:] if each + WATCHED > end]

    def _sign(self, raw: bytes, shape: bytes, number: int) -> WentOn | None:
        """Return the sign of a run that goes on, None for any other line; one of mere prose is noted."""
        if shape in self._signless:
            return None
        line, owner = unprefixed(raw[:MAX_CHARACTERS].decode("utf-8", "replace"))
        handled = GOES_ON.search(line) is not None
        if (line[:1] not in {" ", "\t"} or line.lstrip().startswith("Normal ")) and not opens(line):
            if handled or WORKS.search(line):
                return WentOn(number, owner, handled)
            if is_prose(line):
                self._facts.prose.append(number)
                return None
        if len(self._signless) >= MAX_SHAPES:
            self._signless.clear()
        self._signless.add(shape)
        return None

    def _candidates(self, lines: list[bytes], shapes: list[bytes]) -> list[int]:
        """Return which lines have a root, of those unlike all that said nothing before."""
        dull = self._dull
        novel = [index for index in range(len(lines)) if shapes[index] not in dull]
        self._new = len(novel) > MAX_NEW * len(lines)
        known = [index for index in novel if shapes[index] in self._rooted]
        if known:
            novel = [index for index in novel if shapes[index] not in self._rooted]
        if not novel:
            return known
        rooted = self._words.lines_with([lines[index] for index in novel])
        for shapes_known, found in ((dull, False), (self._rooted, True)):
            if len(shapes_known) + len(novel) > MAX_SHAPES:
                shapes_known.clear()
            shapes_known.update(
                shapes[index] for line, index in enumerate(novel[:MAX_SHAPES]) if (line in rooted) is found
            )
        return sorted([*known, *(novel[line] for line in rooted)])

    def _take(self, lines: list[bytes], shapes: list[bytes], index: int) -> int:
        """Read a line that has a root, and return the index of the next one to look at."""
        raw, number = lines[index][:MAX_CHARACTERS], self._line + index + 1
        if self._open:
            self._read_line(raw, number, candidate=True)
            return index + 1
        shape = shapes[index]
        if shape in self._dull:
            return index + 1
        for known, traceback in self._repeats.get(shape, ()):
            if shapes[index : index + len(known)] == known:  # a traceback that was read before, to its last line
                last = self._again = number + len(known) - 1
                if traceback is not None:
                    traceback.last_line = last
                return index + len(known)
        said = self._read_line(raw, number, candidate=True)
        if not said and not _TOLD_BY_NUMBER.search(raw):
            self._dull.add(shape)
        if len(self._open) != 1 or not said:
            return index + 1
        return self._take_traceback(lines, shapes, index)

    def _take_traceback(self, lines: list[bytes], shapes: list[bytes], start: int) -> int:
        """Read on while one traceback alone is open, and remember what all of it looks like."""
        at = start + 1
        while self._open and at < len(lines):
            self._read_line(lines[at][:MAX_CHARACTERS], self._line + at + 1, candidate=True)
            at += 1
        if not self._open and self._remembered < MAX_REPEATS:
            self._remembered += 1
            self._repeats.setdefault(shapes[start], []).append((shapes[start:at], self._closed))
        return at

    def _read_line(self, raw: bytes, number: int, *, candidate: bool) -> bool:
        """Read one line; False where it says nothing, and no line like it would."""
        line, owner = unprefixed(raw.decode("utf-8", "replace"))
        known = self._in_traceback(line, owner, number)
        traceback = known or self._begun(line, owner, number)
        hit = candidate and self._match(line, owner, number, traceback)
        return bool(hit) or traceback is not None or is_ignored(line) or is_chain(line)

    def _in_traceback(self, line: str, owner: str, number: int) -> Traceback | None:
        """Give a line to the traceback that it belongs to."""
        for key in [key for key, each in self._open.items() if number > each.until]:
            self._close(key)
        found = self._open.get(owner)
        if found is None:
            return None
        if opens(line) and "Traceback" in line and found.traceback.frames:
            self._close(owner)  # one inside the message of another
            return None
        if not found.traceback.take(line, number):
            self._close(owner)
            return found.traceback if found.traceback.raised_line == number else None
        self._open[owner] = found._replace(until=number + 400)
        return found.traceback

    def _begun(self, line: str, owner: str, number: int) -> Traceback | None:
        if is_ignored(line):
            self._ignored[owner] = number
        if is_chain(line):
            self._facts.chain(self._ended.get(owner))
        if not opens(line) or len(self._open) >= MAX_OPEN:
            return None
        begun = Traceback(number, owner, ignored=number - self._ignored.get(owner, -99) <= 4)
        if "Original Traceback" in line:  # torch sends the text of a worker's traceback
            begun.worker = (self._ended[owner].worker if owner in self._ended else "") or "a worker"
        begun.begin(line, number)
        self._open[owner] = _Open(begun, number + 400)
        return begun

    def _close(self, owner: str) -> None:
        ended = self._open.pop(owner).traceback
        if len(self._ended) > MAX_OPEN:
            self._ended.clear()
        self._ended[owner] = ended
        self._closed = self._facts.keep(ended)
        self._said.append(ended.last_line)

    def _match(self, line: str, owner: str, number: int, traceback: Traceback | None) -> bool:
        """Ask a line for the texts of the roots that it has."""
        found = False
        for _, root, texts in self._by_root:
            if root not in line:
                continue
            for text in texts:
                if text.literal in line and self._facts.counted(text) < MAX_TRIES:
                    match = text.found_in(line)
                    if match is not None and not _is_quoted(text, line, match.start(), number, traceback):
                        found = True
                        self._said.append(number)
                        self._facts.add(text, Hit(number, line.strip(), match, self._source, owner, traceback))
        return found

    def _last_lines(self) -> Iterable[str]:
        lines = self._last.decode("utf-8", "replace").splitlines()
        return [unprefixed(each)[0] for each in lines[-LAST_LINES:]]


def _is_quoted(text: LogPattern, line: str, at: int, number: int, traceback: Traceback | None) -> bool:
    """Whether a text is quoted where it stands; in a traceback what isn't its last line is source code."""
    if traceback is not None:
        in_code = number != traceback.raised_line and bool(traceback.frames) and not traceback.type
        return in_code or is_enclosed(line, at)
    return is_quoted(line, min(line.find(text.literal), at))


def scan_text(text: str, texts: tuple[LogPattern, ...], source: str = "log") -> LogFacts:
    """Return the facts of a text that is all there."""
    scanner = Scanner(texts, source)
    scanner.feed(text.encode("utf-8", "surrogateescape"))
    return scanner.facts()
