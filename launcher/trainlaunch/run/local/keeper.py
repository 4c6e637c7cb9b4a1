"""The process that stays with a local run: it starts the job, writes its log, waits for its end and cleans up after it.

It is a session of its own, so neither the end of `up` nor that of the terminal reaches it or the job. The job dies with
it (PR_SET_PDEATHSIG), and what the job leaves behind becomes its child (PR_SET_CHILD_SUBREAPER) and is killed at the
end, as with a container. It reads what to start from stdin, as JSON, since that holds secrets, and answers on stdout:
nothing where the job was started, else why not.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import selectors
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any

from trainlaunch.run.base.backend import Peak
from trainlaunch.run.base.secret_values import RedactedStream
from trainlaunch.run.base.sessions import HEADER, STDERR
from trainlaunch.run.local.follow import Overflow
from trainlaunch.run.local.log import TimesWriter
from trainlaunch.run.local.processes import RUN_ID, descendants, identity_of, peak_now, remove_own_folder, risen
from trainlaunch.run.local.state import RunFolder

STDOUT = 1
CHUNK = 64 * 1024
PEAK_SECONDS = 2.0  # between two looks at the /dev/shm of the run
LAST_SECONDS = 10.0  # for killed processes to go; one in an uninterruptible wait may stay
FULL = b"trainlaunch: the disk of the run's log is full: what comes now is shown and not kept\n"
READ_SECONDS = 2.0
_PDEATHSIG, _CHILD_SUBREAPER = 1, 36


class LogWriter:
    """Appends frames to the log, and their times beside it.

    What a full disk doesn't take goes to those who follow now, by `overflow`, and the log says so once there is room.
    """

    def __init__(self, path: Path, overflow: Overflow) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND)
        self._times = TimesWriter(path.parent)
        self._overflow = overflow
        self.overflowed = False
        self.lost = 0

    def write(self, stream: int, data: bytes) -> None:
        """Append one chunk whole, or nothing of it."""
        if self.lost:
            sentence = f"trainlaunch: {self.lost} bytes of the log were lost: its disk was full\n".encode()
            if self._append(_frame(STDERR, sentence) + _frame(stream, data)):
                self.lost = 0
                return
        elif self._append(_frame(stream, data)):
            return
        else:
            self._overflow.write(self._end(), _frame(STDERR, FULL))
        self.lost += len(data)
        self.overflowed = True
        self._overflow.write(self._end(), _frame(stream, data))

    def _end(self) -> int:
        return os.lseek(self._file, 0, os.SEEK_END)

    def _append(self, frame: bytes) -> bool:
        end = self._end()
        self._times.note(end)  # first, so that who reads the frame finds its time
        try:
            if os.write(self._file, frame) == len(frame):
                return True
        except OSError:
            pass  # as a short write: the disk is full
        os.ftruncate(self._file, end)
        return False


def _frame(stream: int, data: bytes) -> bytes:
    return HEADER.pack(stream, len(data)) + data


class LocalKeeper:
    """One job from its start to its end."""

    def __init__(self, folder: RunFolder, spec: dict[str, Any]) -> None:
        self._folder = folder
        self._redacted = {each: RedactedStream(spec["secrets"].items()) for each in (STDOUT, STDERR)}
        overflow = Overflow()
        self._log = LogWriter(folder.log, overflow)
        self._selector = selectors.DefaultSelector()
        self._code: int | None = None
        self._run_id = str(spec["env"].get(RUN_ID, ""))
        self._peak = Peak(0)
        # Before the fork below: a signal handler of Python is the default again in the job.
        self._woken = _wake_on_signals()
        self._job = subprocess.Popen(
            spec["argv"],
            env={**spec["env"], **{name: in_memory(text) for name, text in spec["files"].items()}},
            cwd=spec["cwd"],
            **self._given(spec["streams"]),
            start_new_session=True,
        )
        self._shown_as = STDERR if spec["streams"][STDOUT] is None else STDOUT
        for each in {*spec["streams"][: STDERR + 1]} - {None}:
            os.close(each)
        try:
            folder.start(identity_of(os.getpid()), identity_of(self._job.pid), time.time(), overflow.file)
        except OSError:  # `down` was faster
            self._job.kill()
            raise

    def _given(self, streams: Sequence[int | None]) -> dict[str, Any]:
        """Return what the job gets for its streams, as CallerStreams has them: its caller's, else pipes of ours."""
        stdin, stdout, stderr, self._terminal = streams
        dies = when_parent_dies(signal.SIGKILL)

        def prepare() -> None:
            dies()
            if self._terminal is not None:
                fcntl.ioctl(next(each for each in (stdin, stdout, stderr) if each), termios.TIOCSCTTY, 0)

        pipe = subprocess.PIPE
        return {
            "stdin": subprocess.DEVNULL if stdin is None else stdin,
            "stdout": pipe if stdout is None else stdout,
            "stderr": pipe if stderr is None else stderr,
            "preexec_fn": prepare,  # no other thread runs
        }

    def run(self) -> None:
        """Copy output until the job has ended, end what it left, record the end."""
        streams = ((self._job.stdout, STDOUT), (self._job.stderr, STDERR))
        for pipe, number in streams:
            if pipe is not None:
                self._selector.register(pipe, selectors.EVENT_READ, number)
        if self._terminal is not None:
            self._selector.register(self._terminal, selectors.EVENT_READ, self._shown_as)
        self._selector.register(self._woken, selectors.EVENT_READ)
        looked = time.monotonic()
        while self._code is None:
            self._copy(PEAK_SECONDS)
            self._reap()
            if time.monotonic() - looked >= PEAK_SECONDS:
                looked = time.monotonic()
                self._look_at_shm()
        self._end_the_rest()
        remove_own_folder(self._run_id)
        self._folder.end(self._code, time.time())
        if self._log.overflowed:
            time.sleep(READ_SECONDS)  # what followers have not read yet ends with this process

    def _copy(self, seconds: float) -> None:
        ready = self._selector.select(seconds)
        for key, _ in ready:
            try:
                data = os.read(key.fd, CHUNK)
            except OSError:  # a terminal that nobody has open any more
                data = b""
            if key.data is None:
                continue
            if not data:
                self._selector.unregister(key.fileobj)
            self._write(key.data, self._redacted[key.data].feed(data) if data else self._redacted[key.data].end())
        for number, stream in () if ready else self._redacted.items():
            self._write(number, stream.end())  # the rest of what looks like a secret's beginning doesn't come

    def _write(self, number: int, data: bytes) -> None:
        if data:
            self._log.write(number, data)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self._job.pid:
                code = os.waitstatus_to_exitcode(status)
                self._code = code if code >= 0 else 128 - code
                self._job.returncode = code

    def _end_the_rest(self) -> None:
        """Kill all that the job left, and copy what is still in the pipes, whose last writers they are."""
        deadline = time.monotonic() + LAST_SECONDS
        while time.monotonic() < deadline:
            left = descendants(os.getpid())
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            self._copy(0.01)
            self._reap()
            if not left and len(self._selector.get_map()) == 1:
                return

    def _look_at_shm(self) -> None:
        peak = risen(self._peak, peak_now(descendants(os.getpid())))
        if peak != self._peak:
            self._peak = peak
            self._folder.note_peak(peak)


def when_parent_dies(number: signal.Signals) -> Callable[[], None]:
    """Return what a new process calls to get a signal when the one that started it ends, however that does."""
    return lambda: _prctl(_PDEATHSIG, number)


def in_memory(text: str) -> str:
    """Return the path of a file with `text` that is on no disk, for this user's processes, and gone when we are."""
    file = os.memfd_create("trainlaunch")
    os.fchmod(file, 0o400)
    left = os.fsencode(text)
    while left:
        left = left[os.write(file, left) :]
    return f"/proc/{os.getpid()}/fd/{file}"


def _wake_on_signals() -> IO[bytes]:
    """Return a pipe that becomes readable when a child ends.

    The signals of a terminal, a logout or a shutdown are taken and left: the job's own end is what ends a supervisor.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _taken)
    return os.fdopen(reading, "rb", buffering=0)


def _taken(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the pipe has woken the loop."""


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def main(folder: str) -> None:
    """Start the job that stdin describes, leave the launcher's process tree, keep the job."""
    spec = json.load(sys.stdin.buffer)
    if os.fork():
        os._exit(0)
    _prctl(_CHILD_SUBREAPER, 1)
    try:
        keeper = LocalKeeper(RunFolder(Path(folder)), spec)
    except OSError as refused:
        os.write(STDOUT, str(refused).encode())
        os._exit(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in (0, STDOUT, STDERR):
        os.dup2(nothing, each)
    os.chdir("/")
    keeper.run()
