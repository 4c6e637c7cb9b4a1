"""`trainlaunch shell` on a terminal of the test's own, and what it must do on every target."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.conftest import ROOT

PATIENCE = 40.0
# What the terminal shows of a typed line has the quotes; what the shell prints of it doesn't.
ASKS_READY = b"echo re''ady\n"


class Terminal:
    """A started verb on a terminal of 33 rows and 111 columns."""

    def __init__(self, argv: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        self.seen = b""
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execve(sys.executable, [sys.executable, "-m", "trainlaunch", *argv], dict(env))  # noqa: S606
        self.resize(33, 111)
        self._code: int | None = None

    def types(self, data: bytes) -> Terminal:
        """Type something."""
        os.write(self._master, data)
        return self

    def until(self, text: bytes) -> Terminal:
        """Wait until something new of it has a text, and forget what came before."""
        until = time.monotonic() + PATIENCE
        while text not in self.seen:
            assert time.monotonic() < until, (text, self.seen)
            if select.select([self._master], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):
                    self.seen += os.read(self._master, 1 << 16)
        self.seen = self.seen.partition(text)[2]
        return self

    def ready(self) -> Terminal:
        """Wait until its shell answers: what is typed before its prompt is typed again."""
        self.until(b"preflight passed")
        return self.types(ASKS_READY).until(b"ready\r\n")

    def resize(self, rows: int, columns: int) -> None:
        """Make the terminal another size; the kernel tells the process."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def close(self) -> None:
        """Close the terminal, as its window does."""
        with contextlib.suppress(OSError):
            os.close(self._master)
        self._master = -1

    def end(self) -> int:
        """Wait for the end and return the exit code, negative for a signal's."""
        until = time.monotonic() + PATIENCE
        while self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
            assert time.monotonic() < until, self.seen
            if self._master >= 0 and select.select([self._master], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):
                    self.seen += os.read(self._master, 1 << 16)
        return self._code

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)


class Shells:
    """Starts `trainlaunch shell` in a folder, on a terminal or on pipes."""

    def __init__(self, folder: Path, args: Sequence[str] = (), **env: str) -> None:
        self.folder = folder
        self.args = list(args)
        self.env = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "launcher"),
            "TERM": "xterm-256color",
            "NO_COLOR": "1",
            **env,
        }
        self._terminals: list[Terminal] = []

    def on_terminal(self, what: str = "job.yaml", *command: str) -> Terminal:
        """Start it on a terminal."""
        words = ["shell", what, *self.args, *(["--", *command] if command else [])]
        self._terminals.append(Terminal(words, self.folder, self.env))
        return self._terminals[-1]

    def on_pipes(self, *command: str, what: str = "job.yaml", given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run it to its end without a terminal."""
        argv = [sys.executable, "-m", "trainlaunch", "shell", what, *self.args, "--", *command]
        return subprocess.run(
            argv, cwd=self.folder, env=self.env, input=given, capture_output=True, timeout=PATIENCE, check=False
        )

    def end(self) -> None:
        """End what is left."""
        for each in self._terminals:
            each.close()
            with contextlib.suppress(OSError):
                each.kill()
            with contextlib.suppress(OSError):
                os.waitpid(each.pid, 0)


@contextlib.contextmanager
def shells(folder: Path, args: Sequence[str] = (), **env: str) -> Iterator[Shells]:
    """Give them, and end what is left."""
    found = Shells(folder, args, **env)
    try:
        yield found
    finally:
        found.end()


def gone(left: Callable[[], object]) -> bool:
    """Whether nothing is left before long."""
    until = time.monotonic() + 30
    while left():
        if time.monotonic() > until:
            return False
        time.sleep(0.2)
    return True


class ShellBasics:
    """A container like the job's. Fixtures: `shell` starts the verb, `left` tells what it made and is still there."""

    def test_it_is_the_jobs_container_on_a_terminal(self, shell: Shells, left: Callable[[], object]) -> None:
        """Its variables and size of terminal, also after a change; Ctrl-C is the program's; the code is the shell's."""
        terminal = shell.on_terminal().ready()
        assert left()
        terminal.types(b'echo "$GREETING" "$TRAINLAUNCH_NUM_WORKERS" "$TERM"\n').until(b"hi there 2 xterm-256color\r\n")
        terminal.types(b"stty size\n").until(b"33 111\r\n")
        terminal.resize(44, 99)
        terminal.types(b'until [ "$(stty size)" = "44 99" ]; do sleep 0.1; done; echo resi""zed\n')
        terminal.until(b"resized\r\n")
        terminal.types(b"sh -c 'echo beg\"\"un; exec sleep 60'\n").until(b"begun\r\n")
        terminal.types(b"\x03").types(b"echo co''de $?\n").until(b"code 130\r\n")
        terminal.types(b"exit 9\n")
        assert terminal.end() == 9
        assert gone(left)

    def test_a_command_on_pipes_is_one(self, shell: Shells, left: Callable[[], object]) -> None:
        """Bytes in, bytes out, stderr apart, the end of stdin, its exit code; our own words are on stderr."""
        data = bytes(range(256)) * 1000
        done = shell.on_pipes("sh", "-c", "cat; echo problem >&2; exit 7", given=data)
        assert done.returncode == 7, done.stderr
        assert done.stdout == data
        assert b"problem\n" in done.stderr
        assert gone(left)


class ShellContract(ShellBasics):
    """Nor does anything stay of it, whatever becomes of who asked for it."""

    def test_nothing_is_left_when_it_is_killed(self, shell: Shells, left: Callable[[], object]) -> None:
        """SIGKILL leaves it no time to clean up."""
        terminal = shell.on_terminal().ready()
        assert left()
        terminal.kill()
        assert terminal.end() == -9
        assert gone(left)

    def test_nothing_is_left_when_the_terminal_closes(self, shell: Shells, left: Callable[[], object]) -> None:
        """SIGHUP."""
        terminal = shell.on_terminal().ready()
        assert left()
        terminal.close()
        assert terminal.end() == 129
        assert gone(left)
