"""The caller's own streams for a job: a terminal where the caller has one, with its size, its keys and its Ctrl-C.

The job gets a pseudo-terminal for those of its streams that are a terminal here, and what the caller has for the
others. Its supervisor reads what comes from it; this process writes what is typed, and takes that terminal out of
line mode meanwhile, so that the job's own line discipline makes SIGINT of Ctrl-C, as it would of a command alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import struct
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from typing import NamedTuple

BACKGROUND_SECONDS = 0.3  # between two looks at whether a process in the background is in front again
READ_BYTES = 4096
_LOCAL, _SPECIAL = 3, 6  # of what tcgetattr returns
_SIZE = struct.Struct("HHHH")
STDIN, STDOUT, STDERR = 0, 1, 2


class CallerStreams(NamedTuple):
    """Descriptors for a job's streams, None where its supervisor gives one; `master` is its terminal's other end."""

    stdin: int | None = None
    stdout: int | None = None
    stderr: int | None = None
    master: int | None = None

    @property
    def passed(self) -> tuple[int, ...]:
        """All of them, each once."""
        return tuple({each for each in self if each is not None})

    def close(self) -> None:
        """Let go of the job's ends, which it has by now; its output ends when nobody else has them."""
        for each in {self.stdin, self.stdout, self.stderr}:
            if each is not None:
                os.close(each)


NO_STREAMS = CallerStreams()


class TypedKeys:
    """Reads what is typed on the caller's terminal and hands it on, out of line mode while `_takes_keys`.

    Not `shared`: the job has none of the caller's terminal, and of its stdin only what is a pipe or a file.
    """

    def __init__(self, *, shared: bool = True) -> None:
        self._terminals = tuple(each for each in (STDIN, STDOUT, STDERR) if shared and is_terminal(each))
        self._saved: list[int | list[bytes | int]] | None = None
        self._wake: tuple[int, int] | None = None
        self._thread: threading.Thread | None = None
        self._on_interrupt: Callable[[], None] = lambda: None

    @property
    def is_raw(self) -> bool:
        """Whether the caller's terminal is out of line mode now, in which a line ends with CR and LF."""
        return self._saved is not None

    @property
    def shares_output(self) -> bool:
        """Whether the job's stdout and stderr come as one stream."""
        raise NotImplementedError

    def resize(self) -> None:
        """Give the job's terminal the size of the caller's; the kernel tells the job."""
        raise NotImplementedError

    def signal(self, number: int) -> bool:
        """Send a signal to what is in front on the job's terminal; False where it has none."""
        raise NotImplementedError

    @contextlib.contextmanager
    def typing(self, on_interrupt: Callable[[], None]) -> Iterator[None]:
        """Pass on what is typed and the size; `on_interrupt` hears each Ctrl-C that the job's terminal made SIGINT."""
        self._on_interrupt = on_interrupt
        resized = signal.signal(signal.SIGWINCH, lambda *_: self.resize())
        self._begin()
        try:
            yield
        finally:
            if self._thread is not None and self._wake is not None:
                os.close(self._wake[1])
                self._thread.join(timeout=2)
            self._restore()
            signal.signal(signal.SIGWINCH, resized)

    def _begin(self) -> None:
        raise NotImplementedError

    def _read_keys(self) -> None:
        """Start reading, in a thread of its own."""
        self._wake = os.pipe()
        self._thread = threading.Thread(target=self._pass_on, args=(self._wake[0],), daemon=True)
        self._thread.start()

    def _pass_on(self, wake: int) -> None:
        on_terminal = STDIN in self._terminals
        while True:
            # In the background, reading the terminal, or changing it, would stop this process.
            if on_terminal and os.tcgetpgrp(STDIN) != os.getpgrp():
                if select.select([wake], [], [], BACKGROUND_SECONDS)[0]:
                    return
                continue
            self._take()
            if wake in select.select([STDIN, wake], [], [])[0]:
                return
            try:
                typed = os.read(STDIN, READ_BYTES)
                self._hand_on(typed)
            except OSError:  # either side has hung up
                return
            if not typed:
                return

    def _hand_on(self, typed: bytes) -> None:
        """Give the job what was typed, nothing for the end of it. Raises OSError where it is gone."""
        raise NotImplementedError

    def _takes_keys(self) -> bool:
        """Whether every key is the job's terminal's to interpret."""
        return STDIN in self._terminals

    def _take(self) -> None:
        """Take the caller's terminal out of line mode."""
        if self._saved is None and self._takes_keys():
            self._saved = termios.tcgetattr(STDIN)
            tty.setraw(STDIN, termios.TCSADRAIN)

    def _restore(self) -> None:
        if self._saved is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(STDIN, termios.TCSADRAIN, self._saved)
            self._saved = None


class CallerTerminal(TypedKeys):
    """The terminal of a job that runs in front of its caller; without one here it has none either."""

    def __init__(self, *, shared: bool = True) -> None:
        super().__init__(shared=shared)
        self._slave: int | None = None
        self._master: int | None = None
        if self._terminals:
            self._master, self._slave = os.openpty()
            termios.tcsetattr(self._slave, termios.TCSANOW, termios.tcgetattr(self._terminals[0]))
            self.resize()
        self._stdin = None if is_terminal(STDIN) else _copy_of(STDIN)

    @property
    def streams(self) -> CallerStreams:
        """What the job gets: its own ends are closed here once it has them."""
        given = dict.fromkeys(self._terminals, self._slave)
        return CallerStreams(given.get(STDIN, self._stdin), given.get(STDOUT), given.get(STDERR), self._master)

    @property
    def shares_output(self) -> bool:
        """Whether both are its terminal; one that is redirected here has a pipe of its own."""
        return {STDOUT, STDERR} <= {*self._terminals}

    def resize(self) -> None:
        """Give the job's terminal the size of the caller's; the kernel tells the job."""
        if self._master is not None:
            with contextlib.suppress(OSError):
                size = fcntl.ioctl(self._terminals[0], termios.TIOCGWINSZ, _SIZE.pack(0, 0, 0, 0))
                fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def signal(self, number: int) -> bool:
        """Send a signal to what is in front on the job's terminal; False where it has none."""
        if self._master is None:
            return False
        with contextlib.suppress(OSError):
            os.killpg(os.tcgetpgrp(self._master), number)
            return True
        return False

    def _begin(self) -> None:
        if self._master is not None and STDIN in self._terminals:
            self._read_keys()

    def _hand_on(self, typed: bytes) -> None:
        if not typed or self._master is None:
            return
        master = self._master
        settings = termios.tcgetattr(master)
        makes_signals = bool(settings[_LOCAL] & termios.ISIG)
        suspend = settings[_SPECIAL][termios.VSUSP] if makes_signals else b""
        before, asked, after = typed.partition(suspend) if suspend not in {b"", b"\0"} else (typed, b"", b"")
        os.write(master, before)
        if makes_signals:
            for _ in range(before.count(settings[_SPECIAL][termios.VINTR])):
                self._on_interrupt()
        if asked:
            self._suspend()
            os.write(master, after)

    def _suspend(self) -> None:
        """Stop the job and this process, as a shell's Ctrl-Z does; a job without a shell around it ignores SIGTSTP."""
        self.signal(signal.SIGSTOP)
        self._restore()
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(0)  # a stopped process goes on here
        self.resize()
        self.signal(signal.SIGCONT)


def is_terminal(number: int) -> bool:
    """Whether a descriptor is one; a closed one is none."""
    try:
        return os.isatty(number)
    except OSError:
        return False


def _copy_of(number: int) -> int | None:
    """Return a descriptor of the same stream above those that every process has, None of a closed one."""
    try:
        return fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, STDERR + 1)
    except OSError:
        return None
