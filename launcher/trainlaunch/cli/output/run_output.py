"""What a followed job is shown on, and the words about a run's end.

A job's output and our own lines share two streams: neither changes the other.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from trainlaunch.cli.output.report import headline, help_line, parts
from trainlaunch.cli.output.streams import Streams, TextStyle, fitted, style_of
from trainlaunch.sanitize import SafeText, sanitize, shown
from trainlaunch.units import age, human_size

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.case import Diagnosis
    from trainlaunch.diagnose.base.evidence import Evidence
    from trainlaunch.run.base.backend import Chunk
    from trainlaunch.run.base.run_query import Run
    from trainlaunch.run.base.store import Followed, Following, RunStore, Tell

OTHER = {"stdout": "stderr", "stderr": "stdout"}
GOES_ON = "the job goes on, and `trainlaunch logs` has it all"


def write_bytes(stream: TextIO, data: bytes) -> None:
    """Write a job's bytes to a text stream unchanged, at once."""
    raw = getattr(stream, "buffer", None)
    if raw is None:
        stream.write(data.decode(errors="replace"))
    else:
        raw.write(data)
    stream.flush()


class Screen:
    """What a followed job is shown on. A stream that takes no more ends nothing: the job goes on without it."""

    def __init__(self, streams: Streams, *, is_raw: Callable[[], bool] = lambda: False) -> None:
        self._is_raw = is_raw  # whether the terminal is out of line mode, in which a line ends with CR and LF
        self._streams = {"stdout": streams.out, "stderr": streams.err}
        self._gone: set[str] = set()
        self._last = {"stdout": b"\n", "stderr": b"\n"}
        # Asked now: one that has hung up says that it never was a terminal.
        self._terminals = {name for name, each in self._streams.items() if each.isatty()}
        self.left = False  # whether the terminal is given up
        self._one_terminal = len(self._terminals) == len(self._streams)

    def out(self, data: bytes) -> None:
        """Write the job's stdout."""
        self._write("stdout", data)

    def err(self, data: bytes) -> None:
        """Write the job's stderr."""
        self._write("stderr", data)

    def say(self, text: str) -> None:
        """Say a line of ours."""
        self.line(f"trainlaunch: {text}")

    def line(self, text: str) -> None:
        """Write a line to stderr, below an unfinished one of the job's, like that of a progress bar."""
        self._line("stderr", text)

    def leave(self, why: str) -> None:
        """Go on without a terminal: what pointed to it points to nothing, for all that this process starts too.

        A file or a pipe is still written.
        """
        if self.left:
            return
        self.left = True
        self.say(f"{why}: {GOES_ON}")
        self._gone |= self._terminals
        _close(0, *(_descriptor(self._streams[name]) for name in self._terminals))

    def _line(self, name: str, text: str) -> None:
        unfinished = self._last[name] != b"\n" or (self._one_terminal and self._last[OTHER[name]] != b"\n")
        stream = self._streams[name]
        shown = "\n" * unfinished + fitted(text, stream) + "\n"
        shown = shown.replace("\n", "\r\n") if self._is_raw() else shown
        self._attempt(name, lambda: _write_text(stream, shown), b"\n")
        if self._one_terminal:
            self._last[OTHER[name]] = b"\n"

    def _write(self, name: str, data: bytes) -> None:
        if data:
            self._attempt(name, lambda: write_bytes(self._streams[name], data), data[-1:])

    def _attempt(self, name: str, write: Callable[[], None], last: bytes) -> None:
        if name in self._gone:
            return
        try:
            write()
            self._last[name] = last
        except OSError as cause:
            self._gone.add(name)
            if cause.errno == errno.EIO and name in self._terminals:
                self.leave("the terminal has hung up")
            elif isinstance(cause, BrokenPipeError):
                self._tell_other(name, f"nobody reads {name} any more")
            else:
                self._tell_other(name, f"{name} can't be written: {cause.strerror or cause}")
            self._forget(name)

    def _forget(self, name: str) -> None:
        """Let what a stream holds back go nowhere, so that the interpreter's own last flush can't fail."""
        _close(_descriptor(self._streams[name]))
        with contextlib.suppress(OSError, ValueError):
            self._streams[name].flush()

    def _tell_other(self, name: str, what: str) -> None:
        """Say on the other stream that one is closed; stdout is the job's own, so it is told to a terminal only."""
        if OTHER[name] == "stderr" or OTHER[name] in self._terminals:
            self._line(OTHER[name], f"trainlaunch: {what}; {GOES_ON}")


def _descriptor(stream: TextIO) -> int | None:
    """Return the descriptor of a stream, None of one that is memory."""
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return None


def _write_text(stream: TextIO, text: str) -> None:
    stream.write(text)
    stream.flush()


def _close(*descriptors: int | None) -> None:
    """Point descriptors to nothing: a closed one would be given to the next file that is opened."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in descriptors:
        if each is not None:
            os.dup2(nothing, each)
    os.close(nothing)


TORCHRUN_ENDS = "ChildFailedError"
_EXCEPTION = re.compile(r"(\[rank\d+\]: *)?[A-Za-z_][\w.]*(Error|Exception|Interrupt)\b")


def hints(command: Callable[[str], str], line: Callable[[str], None]) -> None:
    """Print how to follow a job that was left alone and how to end it; `command` gives the line to type."""
    line(f"follow it: {command('logs -f')}")
    line(f"end it:    {command('down')}")


def follow_run(
    store: RunStore, run: Run, how: Following, streams: Streams, show: Callable[[Chunk], None] | None = None
) -> int:
    """Follow a run to its end, say why it ended, and return its exit code; `show` takes its output, else a Screen."""
    from dataclasses import replace

    from trainlaunch.run.base.backend import Chunk
    from trainlaunch.run.base.console import Console

    screen = Screen(streams)
    console = Console(screen.out, screen.err, screen.say, lambda _: "")
    if show is not None:
        console = replace(console, out=lambda data: show(Chunk(False, data)), err=lambda data: show(Chunk(True, data)))
    return store.follow(run, console, how, teller(store, run.job, screen, streams))


def teller(
    store: RunStore, job: str, screen: Screen, streams: Streams, advise: Callable[[Followed], str] = lambda _: ""
) -> Tell:
    """Return what says how a run that was followed ended and why, or how to follow one that goes on.

    `advise` says what to do about its waits for data.
    """
    from trainlaunch.run.base.wait_reading import waited_words

    def tell(followed: Followed) -> None:
        if followed.started:
            streams.result(f"{followed.started}\n")
        waited = "" if followed.data_wait is None else waited_words(followed.data_wait, followed.seconds)
        if waited:
            ended = followed.verdict or f"ended with {followed.exit_code}"
            screen.say(f"{ended} after {age(followed.seconds)}, {waited}")
        elif followed.verdict:
            screen.say(followed.verdict)
        if followed.evidence is not None:
            say_diagnoses(followed.evidence, streams, screen.line)
        for each in filter(None, (*followed.remarks, waited and advise(followed))):
            screen.say(each)
        if followed.goes_on:
            screen.say(followed.goes_on)
        if followed.started or followed.goes_on:
            hints(lambda verb: f"trainlaunch {verb} {job}{store.options}", screen.line)
        if followed.error is not None:
            raise followed.error

    return tell


def say_diagnoses(evidence: Evidence, streams: Streams, line: Callable[[str], None]) -> None:
    """Print why a run ended: one or two causes, or the bare evidence where nothing names one."""
    from trainlaunch.diagnose import explain_end

    diagnoses = explain_end(evidence)
    for diagnosis in diagnoses:
        line(framed_diagnosis(diagnosis, style_of(streams.err)))
    if not diagnoses and evidence.exit_code:
        line(f"trainlaunch: no known cause{bare_evidence(evidence)}")


def framed_diagnosis(diagnosis: Diagnosis, style: TextStyle) -> str:
    """Return a diagnosis in the frame that errors have."""
    sure = "" if diagnosis.confidence == "certain" else f" ({diagnosis.confidence})"
    told = {"saw": shown(diagnosis.saw), "fix": sanitize(diagnosis.fix)}
    head = headline("note" if diagnosis.is_note else "cause", diagnosis.code, f"{diagnosis.sentence}{sure}", style)
    return SafeText("\n".join([head, *parts(told, style), help_line(diagnosis.code)]))


def bare_evidence(evidence: Evidence) -> str:
    """Return what is known about an end, without a guess: a labelled row for each fact, to follow a line."""
    asked = evidence.oom_killed is not None
    memory = human_size(evidence.memory) if evidence.memory else "none" if asked else "unknown"
    killed = str(evidence.oom_killed).lower() if asked else "unknown"
    peak = "unknown" if evidence.shm_peak is None else human_size(evidence.shm_peak)
    size = human_size(evidence.shm_size) if evidence.private_shm and evidence.shm_size else "unknown"
    facts: dict[str, str] = {evidence.reason: shown(evidence.words)} if evidence.reason else {}
    facts |= {
        "exit code": "unknown" if evidence.exit_code is None else str(evidence.exit_code),
        "OOMKilled": killed,
        "memory limit": memory,
        "/dev/shm": f"peak {peak}, size {size}",
        "last line": _last_words(evidence.log),
    }
    return "".join(f"\n   = {label}: {fact}" for label, fact in facts.items())


def _last_words(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if re.search(r"\w", line)]
    if any(TORCHRUN_ENDS in line for line in lines):  # its own long epilogue stands below the rank's error
        errors = [line for line in lines if _EXCEPTION.match(line) and TORCHRUN_ENDS not in line]
        lines = errors or lines
    return shown(lines[-1]) if lines else "(nothing printed)"
