"""A signal that comes again while the wrapper ends takes no exit code: what stays around a job has the job's own."""

from __future__ import annotations

import collections
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.runners import ROOT

JOB = (
    "import os, signal, time\n"
    "signal.signal(signal.SIGTERM, lambda *_: os._exit(5))\n"
    "os.write(1, b'ready\\n')\n"
    "while True: time.sleep(1)\n"
)


@pytest.fixture
def wrapper(tmp_path: Path) -> Path:
    """Return the end of the preflight, which hands signals of a `script` on and waits."""
    _, begins, ending = (ROOT / "templates" / "preflight.sh").read_text().rpartition('if [ "$tl_script" ]; then\n')
    file = tmp_path / "wrapper.sh"
    file.write_text(f"tl_script=yes tl_signal=''\n{begins}{ending}")
    return file


@pytest.mark.parametrize("times", [10, pytest.param(120, marks=pytest.mark.long)])
@pytest.mark.parametrize("shell", [["dash"], ["busybox", "sh"]], ids=["dash", "busybox"])
def test_the_jobs_code_outlives_a_storm_of_signals(shell: list[str], times: int, wrapper: Path) -> None:
    """One to six SIGTERM within milliseconds, of which any may come as the job has just ended."""
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")
    chance = random.Random(7)  # noqa: S311  moments, no secrets
    codes: collections.Counter[int] = collections.Counter()
    for _ in range(times):
        with subprocess.Popen(
            [*shell, str(wrapper), sys.executable, "-S", "-c", JOB], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as run:
            assert run.stdout is not None
            assert run.stdout.readline() == b"ready\n"
            for _ in range(chance.randint(1, 6)):
                run.send_signal(signal.SIGTERM)
                time.sleep(chance.random() * 0.002)
            codes[run.wait(timeout=60)] += 1
    assert codes == {5: times}


@pytest.mark.parametrize("shell", [["dash"], ["bash"], ["bash", "--posix"], ["busybox", "sh"]], ids=" ".join)
@pytest.mark.parametrize("code", [0, 5, 127, 128, 143, 255])
def test_every_code_is_handed_on(shell: list[str], wrapper: Path, code: int) -> None:
    """That of a job which nobody signals, 127 too, which is also what a shell says of a child that it doesn't know."""
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")
    done = subprocess.run([*shell, str(wrapper), "/bin/sh", "-c", f"exit {code}"], timeout=60, check=False)
    assert done.returncode == code
