"""`ps --watch` on a real terminal: in its own place, as large as the terminal is now, until Ctrl-C."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from trainlaunch.run.local.backend import LocalBackend

from tests.conftest import ROOT
from tests.local.conftest import Start
from tests.run.contract import MakePlan
from tests.run.test_up import read_until

CLEAR = "\x1b[H\x1b[J"


class Terminal:
    """A pseudo-terminal with one program in front, as a shell would start it."""

    def __init__(self, *words: str, columns: int, rows: int) -> None:
        self._master, inside = pty.openpty()
        self.resize(columns, rows)
        self.seen = ""
        self.program = subprocess.Popen(
            [sys.executable, "-m", "trainlaunch", *words],
            env={**os.environ, "PYTHONPATH": str(ROOT / "launcher"), "TERM": "xterm"},
            stdin=inside,
            stdout=inside,
            stderr=inside,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - tests have one thread
        )
        os.close(inside)

    def resize(self, columns: int, rows: int) -> None:
        """Give it another size, which its program is told."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._master, keys)

    def screen(self, wanted: Callable[[list[str]], bool], seconds: float = 30.0) -> list[str]:
        """Return the lines of the last screen when they are as wanted."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if select.select([self._master], [], [], 0.1)[0]:
                self.seen += os.read(self._master, 65536).decode()
            lines = self.seen.rpartition(CLEAR)[2].split("\r\n")
            if not lines[-1] and wanted(lines[:-1]):
                return lines[:-1]
        pytest.fail(f"it never came: {self.seen!r}")

    def close(self) -> None:
        """End what still runs."""
        self.program.kill()
        self.program.wait()
        os.close(self._master)


@pytest.fixture
def terminal(state: Path) -> Iterator[Callable[..., Terminal]]:
    """Open terminals that are closed at the end."""
    opened: list[Terminal] = []

    def open_one(*words: str, columns: int, rows: int) -> Terminal:
        opened.append(Terminal(*words, columns=columns, rows=rows))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


def test_it_stays_in_its_place_and_within_the_terminal(
    terminal: Callable[..., Terminal], make_plan_of: MakePlan, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """80 columns whatever the names; a narrower or lower terminal is followed at once; Ctrl-C is 130 and no more."""
    monkeypatch.setenv("TRAINLAUNCH_OWNER", "somebody.with.a.long.name@a-host-of-a-long-name.example.org")
    backend = LocalBackend(state)
    long = make_plan_of(command=["true"])
    for number in range(9):
        backend.create(long._replace(name=f"{long.name}-{'x' * 40}{number}"), f"aaaaaa0{number}", 1)
    shown = terminal("ps", "--watch", "--target", "local", columns=132, rows=40)
    lines = shown.screen(lambda lines: len(lines) == 10)
    assert lines[0].split() == ["JOB", "RUN", "OWNER", "STATE", "EXIT", "AGE", "SHM", "TARGET"]
    assert max(map(len, lines)) <= 80
    shown.screen(lambda lines: CLEAR in shown.seen and len(lines) == 10)
    begun = time.monotonic()
    shown.resize(40, 6)
    lines = shown.screen(lambda lines: "… and 6 more" in lines)
    assert time.monotonic() - begun < 10
    assert max(map(len, lines)) == 40
    assert len(lines) == 5
    shown.resize(100, 40)
    shown.screen(lambda lines: len(lines) == 10)
    for each in backend.runs():
        backend.remove(each.id)
    assert shown.screen(lambda lines: len(lines) == 1) == ["there are no runs of trainlaunch"]
    shown.type(b"\x03")
    assert shown.program.wait(timeout=30) == 130
    assert "Traceback" not in shown.seen


def test_without_a_terminal_it_adds_what_is_new(start: Start, make_plan_of: MakePlan, state: Path) -> None:
    """A log of `ps --watch` has the headings once, and a line where a run's state changes."""
    backend = LocalBackend(state)
    plan = make_plan_of(command=["true"])
    first = backend.create(plan, "aaaaaaaa", 1)
    watching = start("ps", "--watch", "--target", "local")
    seen = read_until(watching, b"aaaaaaaa")
    backend.begin(first).exit_code()
    seen += read_until(watching, b"exited")
    watching.kill()
    assert seen.count(b"JOB") == 1
    assert b"\x1b" not in seen
    assert [line.split()[3] for line in seen.decode().splitlines()[1:]][:1] == ["created"]
