"""What a log says: where its patterns stand, and the tracebacks in it."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from trainlaunch.diagnose.base.log_patterns import LogPattern, in_order

HEADER = "Traceback (most recent call last)"
MAX_LINES = 300  # of one traceback; a recursion's thousand frames say the same as its first
KEPT_CHARACTERS = 12_000
_FRAME = re.compile(r'\s+File "(?P<file>[^"]+)", line (?P<line>\d{1,9})(?:, in (?P<name>.+))?')
_IN_GROUP = re.compile(r"^ {2,40}[|+] ?(?![+-])")  # what Python puts before the lines of a group of exceptions
_BOXED = re.compile(r"│ (?P<file>[^:│]{1,300}\.py):(?P<line>\d{1,9}) in (?P<name>[^ │]{1,200})")  # rich's frames
_SUMMARIES = frozenset({"ChildFailedError", "ProcessRaisedException"})  # another's words follow
_RAISED = re.compile(
    r"(?P<type>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?:: (?P<message>.*)|:)?$",
)
# Code that the user did not write; a frame in it is passed on to who called it.
_LIBRARY = re.compile(
    r"(?:site|dist)-packages/|/lib(?:64)?/python\d|^<frozen |^<string>$|/runpy\.py$"
    r"|^/dev/shm/\.trainlaunch(?:-[\w.-]+)?/"  # what `probe`, `tune` and `inject` bring into the job
)
# Or a module below one of these packages, wherever that lies.
_PACKAGES = frozenset(
    {"torch", "torchvision", "numpy", "multiprocessing", "concurrent", "asyncio", "ray", "lightning"}
    | {"pytorch_lightning", "transformers", "accelerate", "deepspeed"}
)
_LOGGED = re.compile(r"--- Logging error ---|Exception ignored (?:in|while)|warnings\.warn|During task with name")
_CHAINS = ("During handling of the above exception", "The above exception was the direct cause")
_IN_WORKER = re.compile(r"Caught (?P<type>[\w.]+) in (?P<who>DataLoader worker process \d+|pin memory thread.*)\.?$")


@dataclass(slots=True)
class Frame:
    """A place in a file."""

    file: str
    line: int
    name: str = ""
    code: str = ""

    @property
    def is_library(self) -> bool:
        """Whether somebody else than the script's author wrote it, as far as its path tells."""
        module, _, ending = self.file.rpartition(".")
        *folders, name = module.split("/")
        names = takewhile(lambda each: re.fullmatch(r"\w+", each), reversed(folders))
        in_package = ending == "py" and re.fullmatch(r"\w+", name) and not _PACKAGES.isdisjoint(names)
        return bool(in_package) or _LIBRARY.search(self.file) is not None or self.is_console_script

    @property
    def is_console_script(self) -> bool:
        """Whether it is a program that an installer wrote, as bin/torchrun."""
        return re.search(r"/s?bin/[\w.-]+$", self.file) is not None and not self.file.endswith(".py")

    @property
    def only_imports(self) -> bool:
        """Whether its line does nothing but import: what fails below it is another's."""
        return re.match(r"(?:import|from) [\w.]+", self.code) is not None


@dataclass(slots=True)
class Traceback:
    """One traceback as far as it was printed; `line` is its first line's number, `raised_line` its last's.

    `type` is `` where the log ends before it. `worker` says in which DataLoader worker or thread it was raised.
    `ignored` tells one that Python prints and goes on after. `led_on` tells one out of which another came. Of several
    that are alike the first is kept; `last_line` is where the last of them ended.
    """

    line: int
    owner: str = ""
    type: str = ""
    message: str = ""
    raised_line: int = 0
    raised_text: str = ""
    frames: list[Frame] = field(default_factory=list)
    text: str = ""
    lines: int = 0
    worker: str = ""
    ignored: bool = False
    led_on: bool = False
    last_line: int = 0
    indent: int = 0

    @property
    def user_frame(self) -> Frame | None:
        """The innermost frame in the user's own files; None without one."""
        return next((each for each in reversed(self.frames) if not each.is_library), None)

    @property
    def short_type(self) -> str:
        """The exception's class without its module."""
        return self.type.rpartition(".")[2]

    def has(self, pattern: str) -> bool:
        """Whether a line of its frames, or of what it raised, has a regular expression."""
        return any(in_order(pattern, line) for line in self.text.split("\n"))

    def begin(self, line: str, number: int) -> None:
        """Read its first line, which may be a frame where its header was lost."""
        if HEADER in line:
            self._keep(line)
            self.indent = 2 * line.lstrip().startswith("traceback : ")  # in a summary of torchrun's
        else:
            self.take(line, number)

    def take(self, line: str, number: int) -> bool:
        """Read its next line; False where the line is not one of its own any more."""
        self.lines += 1
        line = line[self.indent :] if line[: self.indent].isspace() else line
        if self.lines > MAX_LINES:
            return False
        line = _IN_GROUP.sub("", line, count=1) if line.lstrip()[:1] in {"|", "+"} else line
        if self.type and line.strip("=-* "):  # its message begins below it
            self.message, self.last_line = line.strip(), number
            return False
        if frame := _FRAME.match(line) or _BOXED.match(line):
            self._keep(line)
            self.frames.append(Frame(frame["file"], int(frame["line"]), frame["name"] or ""))
            del self.frames[40:-40]
            return True
        if line[:1] in {" ", "\t", "│", "╰"}:
            self._keep(line)
            if self.frames and not self.frames[-1].code and line[:1].isspace():
                self.frames[-1].code = line.strip()
            return True
        if self.type or not line.strip():
            return not self.frames or bool(self.type)
        return self._raised(line.strip(), number)

    def _raised(self, text: str, number: int) -> bool:
        """Read what may be its last line, and return whether its message is still to come."""
        found = _RAISED.match(text) if self.frames or HEADER in self.text else None
        if found is None:
            return False
        self.type, self.message = found["type"], found["message"] or ""
        self.raised_line, self.raised_text, self.last_line = number, text, number
        self._keep(text)
        if inner := _IN_WORKER.match(self.message):
            self.worker = inner["who"]
        return not self.message and text.endswith(":") and self.short_type not in _SUMMARIES

    def _keep(self, line: str) -> None:
        if len(self.text) < KEPT_CHARACTERS:
            self.text += f"{line[:1000]}\n"


def opens(line: str) -> bool:
    """Whether a line begins a traceback, or stands within one whose beginning was lost."""
    return HEADER in line or _FRAME.match(line) is not None


def is_ignored(line: str) -> bool:
    """Whether a line says that the traceback below it ends nothing."""
    return _LOGGED.search(line) is not None


def is_chain(line: str) -> bool:
    """Whether a line joins the traceback above it with the one below."""
    return line.startswith(_CHAINS)


MAX_HITS = 12  # of one text
MAX_TRACEBACKS = 48
MAX_SIGNS = 4096  # of a run that went on


class Hit(NamedTuple):
    """A line that has a known text; `line` counts from 1, and `traceback` is the one that the line is part of."""

    line: int
    text: str
    match: re.Match[str]
    source: str = "log"
    owner: str = ""
    traceback: Traceback | None = None

    def within(self, pattern: str) -> bool:
        """Whether its traceback has a regular expression."""
        return self.traceback is not None and self.traceback.has(pattern)


class WentOn(NamedTuple):
    """A line that only a run prints that went on after what stands before it; `handled` says so in words."""

    line: int
    owner: str = ""
    handled: bool = False


@dataclass(slots=True)
class LogFacts:
    """The facts of one log. `lines` is how many it has, `last` are its last ones; `went_on` is by line.

    `prose` are lines after one that says something, that neither belong to an error nor come of one.
    """

    lines: int = 0
    last: tuple[str, ...] = ()
    tracebacks: list[Traceback] = field(default_factory=list)
    went_on: deque[WentOn] = field(default_factory=lambda: deque(maxlen=MAX_SIGNS))
    prose: deque[int] = field(default_factory=lambda: deque(maxlen=MAX_SIGNS))
    _hits: dict[LogPattern, list[Hit]] = field(default_factory=dict)
    _counts: dict[LogPattern, int] = field(default_factory=dict)
    _kept: dict[tuple[str, ...], Traceback] = field(default_factory=dict)

    def add(self, text: LogPattern, hit: Hit) -> None:
        """Keep a line: the first ones of a text, and always the last."""
        kept = self._hits.setdefault(text, [])
        self._counts[text] = self._counts.get(text, 0) + 1
        if len(kept) >= MAX_HITS:
            kept.pop()
        kept.append(hit)

    def counted(self, text: LogPattern) -> int:
        """Return how many lines had a text."""
        return self._counts.get(text, 0)

    def hits(self, *texts: LogPattern) -> list[Hit]:
        """Return the kept lines that have one of the texts, by line."""
        return sorted((hit for text in texts for hit in self._hits.get(text, ())), key=lambda each: each.line)

    def ending_hits(self) -> Iterator[Hit]:
        """Yield the kept lines of all texts that may end a run."""
        for text, hits in self._hits.items():
            if not text.beside:
                yield from hits

    def keep(self, traceback: Traceback) -> Traceback:
        """Return the one that is kept of those alike, the first; the last of all stays in any case."""
        frame = traceback.user_frame
        place = (frame.file, str(frame.line)) if frame else ()
        signature = (
            traceback.type,
            re.sub(r"\d+", "", traceback.message)[:120],
            *place,
            str(traceback.ignored),
            traceback.owner,
        )
        known = self._kept.get(signature)
        if known is not None and any(each is known for each in self.tracebacks):
            known.last_line = max(known.last_line, traceback.last_line)
            known.led_on = False
            return known
        if len(self._kept) < 10 * MAX_TRACEBACKS:
            self._kept[signature] = traceback
        if len(self.tracebacks) >= MAX_TRACEBACKS:
            del self.tracebacks[MAX_TRACEBACKS // 2]
        self.tracebacks.append(traceback)
        return traceback

    def chain(self, previous: Traceback | None) -> None:
        """Note that the next traceback of the same owner came out of this one."""
        if previous is not None:
            previous.led_on = True
