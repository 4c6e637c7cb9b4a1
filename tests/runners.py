"""Ways to run the command line in tests: in a process of its own, or inside this one where a start isn't the subject.

Both are called alike, `run("plan", "job.yaml", cwd=folder)`, and both return what `subprocess.run` returns as text.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol
from unittest import mock

from trainlaunch.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
SHARED_WITH_A_PROCESS = {"cwd", "env", "input", "timeout"}  # keywords of `subprocess.run` that mean the same in here
TIMEOUT = 120  # seconds
# Nothing of argparse is translated, and to look for that takes half of what a small verb does.
vars(argparse)["_"] = str


class Runs(Protocol):
    """Runs a program with these arguments; keywords go to `subprocess.run`."""

    def __call__(self, *args: str, **kw: Any) -> subprocess.CompletedProcess[str]: ...


def run_process(argv: list[str], **kw: Any) -> subprocess.CompletedProcess[str]:
    """Run a program: output is captured as text, stdin is empty and TIMEOUT holds unless keywords say otherwise."""
    if "input" not in kw:
        kw.setdefault("stdin", subprocess.DEVNULL)
    settings: dict[str, Any] = {"capture_output": True, "text": True, "timeout": TIMEOUT, **kw}
    done: subprocess.CompletedProcess[str] = subprocess.run(argv, check=False, **settings)
    return done


def run_started(*args: str, **kw: Any) -> subprocess.CompletedProcess[str]:
    """Run `trainlaunch ARGS` of this checkout in a process of its own; `env` is added to this process's variables."""
    environment = {**os.environ, **kw.pop("env", {}), "PYTHONPATH": str(ROOT / "launcher")}
    return run_process([sys.executable, "-m", "trainlaunch", *args], env=environment, **kw)


def run_here(*args: str, **kw: Any) -> subprocess.CompletedProcess[str]:
    """Run `trainlaunch ARGS` inside this process, which saves the start of an interpreter.

    What only a process can have (other streams, a variable that Python itself reads) is given a process of its own.
    """
    env = kw.get("env", {})
    if not kw.keys() <= SHARED_WITH_A_PROCESS or any(name.startswith("PYTHON") for name in env):
        return run_started(*args, **kw)
    out, err = _Stream(), _Stream()
    with placed(kw.get("cwd"), env), _streams(kw.get("input", ""), out, err):
        try:
            code = main(args)
        except SystemExit as ended:  # argparse ends the program after --help and --version
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return subprocess.CompletedProcess([*args], code, out.text(), err.text())


def no_file_may_grow() -> None:
    """Let every write to a file fail with EFBIG, as a full disk does with ENOSPC; pipes stay writable.

    It is for `preexec_fn`.
    """
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


class _Stream(io.TextIOWrapper):
    """A stream that a process could have: text over bytes, which its writer may also write."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")

    def text(self) -> str:
        """Return everything that was written, as `subprocess.run(text=True)` would."""
        self.flush()
        assert isinstance(self.buffer, io.BytesIO)
        return io.TextIOWrapper(io.BytesIO(self.buffer.getvalue()), encoding="utf-8").read()


@contextlib.contextmanager
def placed(folder: Path | str | None, variables: Mapping[str, str]) -> Iterator[None]:
    """Let this process have a folder and further variables."""
    before = Path.cwd()
    with mock.patch.dict(os.environ, variables):
        os.chdir(folder or before)
        try:
            yield
        finally:
            os.chdir(before)


@contextlib.contextmanager
def _streams(text: str, out: _Stream, err: _Stream) -> Iterator[None]:
    given = io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")
    with mock.patch.object(sys, "stdin", given), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield
