"""A way into a job's container: what runs there, marked as somebody's, and the terminal or pipes joined to it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import signal
import struct
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import NamedTuple, Protocol

from trainlaunch.container.container import container_of
from trainlaunch.plan.launch_plan import LaunchPlan

MARK = "TRAINLAUNCH_SHELL"  # the variable of all processes of a shell: what ends with it
BEATS_SECONDS = 15.0  # between two signs of life: something on the way may drop a connection that is silent
_A_SHELL = "if command -v bash >/dev/null 2>&1; then exec bash; fi; exec sh"
_MARKED = 'export TRAINLAUNCH_SHELL="$1"; [ -z "$2" ] || export TERM="$2"; shift 2; exec "$@"'
# grep's own words are no match of them, by the brackets. An image without grep keeps its container until the deadline.
_HOLD = """\
trap 'exit 0' TERM INT HUP
tl_wait=120
while :; do
  sleep "$tl_wait" & wait "$!"
  grep -lq 'trainlaunch-lifelin[e]' /proc/[0-9]*/cmdline 2>/dev/null; [ "$?" -ne 1 ] || exit 0
  tl_wait=20
done"""
_LIFELINE = """\
while read -r tl_beat; do :; done
for tl_signal in HUP KILL; do
  for tl_process in /proc/[0-9]*; do
    tl_process=${tl_process#/proc/}
    [ "$tl_process" != "$$" ] || continue
    if grep -q "TRAINLAUNCH_SHELL=$1" "/proc/$tl_process/environ"; then kill -s "$tl_signal" "$tl_process"; fi
  done
  [ "$tl_signal" = KILL ] || sleep 2
done 2>/dev/null"""
PIECE = 1 << 16


def new_token() -> str:
    """Return what tells one shell from another."""
    return secrets.token_hex(8)


def shell_plan(plan: LaunchPlan, command: Sequence[str]) -> LaunchPlan:
    """Return a plan of the same container for a shell, or for a command: one container, and no torchrun in front."""
    words = tuple(command) or ("/bin/sh", "-c", _A_SHELL)
    job = plan.job._replace(script=None, command=words, torchrun=None, active_deadline=None, max_attempts=1)
    return plan._replace(job=job, argv=words)


def hold_argv() -> tuple[str, ...]:
    """Return the first process of a container that only exists for a shell: it waits, and ends without a lifeline."""
    return "/bin/sh", "-c", _HOLD, "trainlaunch-shell"


def planned_argv(plan: LaunchPlan) -> tuple[str, ...]:
    """Return a shell plan's own process: the job's ENTRYPOINT, its preflight, the shell."""
    container = container_of(plan)
    return *container.entrypoint, *container.args


def running_argv(command: Sequence[str]) -> tuple[str, ...]:
    """Return the process for a container that runs a job already, whose preflight has passed."""
    return tuple(command) or ("/bin/sh", "-c", _A_SHELL)


def marked_argv(argv: Sequence[str], token: str, *, term: str) -> tuple[str, ...]:
    """Return a process with the shell's mark; `term` is the terminal's kind, empty without one."""
    return "/bin/sh", "-c", _MARKED, "trainlaunch-shell", token, term, *argv


def lifeline_argv(token: str) -> tuple[str, ...]:
    """Return the command that ends what has the mark once nobody can write to it: also a container made for a shell."""
    return "/bin/sh", "-c", _LIFELINE, "trainlaunch-lifeline", token


class TerminalSize(NamedTuple):
    """A terminal's rows and columns."""

    rows: int
    columns: int


class Command(Protocol):
    """A command that runs in a container, its streams open."""

    def output(self) -> Iterator[tuple[bool, bytes]]:
        """Yield what it writes, with whether that is stderr, until it ends or the connection does."""

    def send(self, data: bytes) -> None:
        """Write to its stdin. Raises OSError where it is gone."""

    def end_input(self) -> None:
        """Let it read the end of its stdin."""

    def resize(self, size: TerminalSize) -> None:
        """Tell its terminal the size of ours."""

    def exit_code(self) -> int | None:
        """Return its exit code after the output's end; None where nobody knows it."""

    def close(self) -> None:
        """Let go of it."""


# Starts a command in a container, and says whether it gets a terminal.
Start = Callable[[Sequence[str], bool], Command]


class Gone(Exception):
    """A signal that ends this process: its number."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(number)


def has_terminal() -> bool:
    """Whether both stdin and stdout are a terminal, so that the command gets one too."""
    return sys.stdin is not None and os.isatty(0) and os.isatty(1)


def terminal_size() -> TerminalSize:
    """Return the size of this terminal."""
    rows, columns, _, _ = struct.unpack("HHHH", fcntl.ioctl(1, termios.TIOCGWINSZ, bytes(8)))
    return TerminalSize(rows or 24, columns or 80)


@contextlib.contextmanager
def ending_signals() -> Iterator[None]:
    """Raise Gone in the main thread for what ends this process, so that everything is taken away on the way out."""

    def handler(number: int, _frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)  # the way out is short, and nothing may cut it
        raise Gone(number)

    before = {each: signal.getsignal(each) for each in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)}
    for each in before:
        signal.signal(each, handler)
    try:
        yield
    finally:
        for each, old in before.items():
            signal.signal(each, old)


def run_inside(start: Start, argv: Sequence[str], token: str, *, term: str | None) -> int | None:
    """Run a command in a container and return its exit code; None where the connection broke before.

    What it started ends with it, or with this process, and so does a container made for it, which has the same token.
    `term` is the kind of its terminal, None for none: every key is the program's, Ctrl-C too. Raises Gone.
    """
    with (
        _alive(start(lifeline_argv(token), False)),
        contextlib.closing(start(marked_argv(argv, token, term=term or ""), term is not None)) as command,
    ):
        return _joined(command, terminal=term is not None)


def _joined(command: Command, *, terminal: bool) -> int | None:
    with _raw() if terminal else contextlib.nullcontext(), _following_size(command, terminal=terminal):
        threading.Thread(target=_feed, args=(command,), daemon=True).start()
        for stderr, data in command.output():
            _write(2 if stderr else 1, data)
    return command.exit_code()


@contextlib.contextmanager
def _alive(lifeline: Command) -> Iterator[None]:
    """Write to a lifeline now and then; its end ends what it belongs to."""
    over = threading.Event()

    def beat() -> None:
        with contextlib.suppress(OSError):
            while not over.wait(BEATS_SECONDS):
                lifeline.send(b"\n")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        lifeline.close()


@contextlib.contextmanager
def _raw() -> Iterator[None]:
    before = termios.tcgetattr(0)
    try:
        tty.setraw(0, termios.TCSANOW)
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(0, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _following_size(command: Command, *, terminal: bool) -> Iterator[None]:
    if not terminal:
        yield
        return
    changed = threading.Event()
    over = False

    def follow() -> None:
        while changed.wait() and not over:
            changed.clear()
            with contextlib.suppress(OSError):
                command.resize(terminal_size())

    def handler(_number: int, _frame: FrameType | None) -> None:
        changed.set()

    threading.Thread(target=follow, daemon=True).start()
    before: Callable[[int, FrameType | None], object] | int | None = signal.signal(signal.SIGWINCH, handler)
    changed.set()
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
        over = True
        changed.set()


def _feed(command: Command) -> None:
    try:
        while data := os.read(0, PIECE):
            command.send(data)
        command.end_input()
    except OSError:
        pass  # either side is gone; the output's end tells


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
