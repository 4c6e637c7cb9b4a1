"""Runs shell text whose `trainlaunch` is this process: a word of a pipeline like any other, and nothing starts."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from unittest import mock

from trainlaunch.cli.main import main

from tests.runners import placed

TIMEOUT = 60  # seconds
# It says that it waits; its process has words, folder, variables and streams, which subshells leave alone.
_STAND_IN = """\
#!/bin/sh
answer="${0%/*}/$$"
mkfifo "$answer"
(echo "$$" >"${0%/*}/asked")
exit "$(read code <"$answer"; echo "$code")"
"""


def run_text(text: str, folder: Path, env: Mapping[str, str], *, stderr: bool) -> str:
    """Return what text of `sh` prints on stdout, and on stderr too where that is asked; `env` is added."""
    with tempfile.TemporaryDirectory() as there, (Path(there) / "printed").open("a+b") as printed:
        stand_in, asked = Path(there) / "trainlaunch", Path(there) / "asked"
        stand_in.write_text(_STAND_IN)
        stand_in.chmod(0o755)
        os.mkfifo(asked)
        process = subprocess.Popen(
            ["sh", "-c", text],
            cwd=folder,
            env={**os.environ, **env, "PATH": f"{there}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=printed if stderr else subprocess.DEVNULL,
        )
        _answer(process, asked)
        printed.seek(0)
        return printed.read().decode()


def _answer(process: subprocess.Popen[bytes], asked: Path) -> None:
    """Do what each stand-in is there for, until the text has ended."""
    asking, ended = os.open(asked, os.O_RDWR), os.pidfd_open(process.pid)
    try:
        while ready := select.select([asking, ended], (), (), TIMEOUT)[0]:
            if asking not in ready:
                process.wait()
                return
            for waiting in os.read(asking, 4096).split():
                code = _do(Path("/proc") / waiting.decode())
                (asked.parent / waiting.decode()).write_text(f"{code}\n")
        raise TimeoutError(process.args)
    finally:
        os.close(asking)
        os.close(ended)
        if process.poll() is None:
            process.kill()
            process.wait()


def _do(stand_in: Path) -> int:
    """Run the verb that a process stands in for, as if it were that process, and return its exit code."""
    words = (stand_in / "cmdline").read_text().split("\0")[2:-1]
    variables = dict(each.split("=", 1) for each in (stand_in / "environ").read_text().split("\0") if "=" in each)
    with mock.patch.dict(os.environ, clear=True), placed(stand_in / "cwd", variables), _streams(stand_in):
        try:
            return main(words)
        except SystemExit as ended:
            return ended.code if isinstance(ended.code, int) else int(ended.code is not None)


@contextlib.contextmanager
def _streams(stand_in: Path) -> Iterator[None]:
    with (
        (stand_in / "fd" / "0").open() as given,
        (stand_in / "fd" / "1").open("a") as out,
        (stand_in / "fd" / "2").open("a") as err,
        mock.patch("sys.stdin", given),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        yield
