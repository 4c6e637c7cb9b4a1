"""A terminal for a program under test: what it shows is waited for, then something is typed, or its size changes."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

SECONDS = 60.0
Act = bytes | Callable[[int], None]


def on_terminal(
    argv: Sequence[str], folder: Path, steps: Iterable[tuple[bytes, Act]], *, env: Mapping[str, str], rows: int = 30
) -> tuple[int, bytes]:
    """Run a program on a terminal of its own and return its exit code and all that was shown.

    Each step is what is waited for, and what is then typed, or a function of the terminal's descriptor.
    """
    pid, terminal = pty.fork()
    if not pid:  # the child: nothing of the tests may go on in it
        try:
            os.chdir(folder)
            os.execvpe(argv[0], list(argv), {**os.environ, **env})  # noqa: S606 - the tests' own words
        finally:
            os._exit(127)
    resize(rows, 101)(terminal)
    waiting, shown, seen = list(steps), b"", 0
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        if select.select([terminal], [], [], 1.0)[0]:
            try:
                shown += os.read(terminal, 4096)
            except OSError:  # it has ended
                break
        if waiting and (at := shown.find(waiting[0][0], seen)) >= 0:
            seen = at + len(waiting[0][0])
            act = waiting.pop(0)[1]
            act(terminal) if callable(act) else os.write(terminal, act)
    else:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    assert not waiting, f"{waiting[0][0]!r} never came: {shown!r}"
    return 128 - code if code < 0 else code, shown


def resize(rows: int, columns: int) -> Callable[[int], None]:
    """Return what gives a terminal another size."""
    return lambda terminal: fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
