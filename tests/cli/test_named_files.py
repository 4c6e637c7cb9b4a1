"""Files that the command line names and that may have no end: FIFOs, devices, folders."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.runners import run_started
from tests.sampling import diagonals

LINE = "docker run --shm-size=2g trainer:1 python train.py\n"
UNSIZED = "docker run trainer:1 python train.py --num-workers 4\n"
LOG = "RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error.\n"
VERBS: dict[str, Callable[[str], list[str]]] = {
    "init": lambda name: ["init", "--from", name],
    "log": lambda name: ["doctor", "--log", name, "--exit-code", "1"],
    "inspect": lambda name: ["doctor", "--inspect", name],
    "lint": lambda name: ["lint", name],
}


ENDLESS = {
    "fifo": "is a FIFO, which would be waited for",
    "/dev/zero": "is a device",
    "socket": "is a socket",
    "/dev/fd/97": "can't be read: No such file or directory",
    ".": "is a folder",
}


@pytest.mark.parametrize(("verb", "name"), diagonals(2, VERBS, [*ENDLESS]))
def test_what_may_have_no_end_is_one_error(verb: str, name: str, tmp_path: Path) -> None:
    """Nobody may ever write to a FIFO, and /dev/zero is read until the memory is full."""
    if (verb, name) == ("lint", "."):
        pytest.skip("lint reads the files of a folder")
    os.mkfifo(tmp_path / "fifo")
    os.mknod(tmp_path / "socket", stat.S_IFSOCK | 0o600)
    done = run_started(*VERBS[verb](name), cwd=tmp_path, timeout=30)
    assert (done.returncode, done.stdout) == (2, "")
    assert ENDLESS[name] in done.stderr
    assert done.stderr.count("error[TL118]") == 1


@pytest.mark.parametrize("verb", ["init", "log", "lint"])
def test_a_shells_substitution_is_read(verb: str, tmp_path: Path) -> None:
    """`<(kubectl logs train)` is a pipe in /dev/fd, which has its writer; a link to it is the FIFO of nobody known."""
    inside, outside = os.pipe()
    os.write(outside, {"init": LINE, "log": LOG, "lint": UNSIZED}[verb].encode())
    os.close(outside)
    try:
        done = run_started(*VERBS[verb](f"/dev/fd/{inside}"), cwd=tmp_path, pass_fds=[inside], timeout=30)
    finally:
        os.close(inside)
    assert {"init": "image: trainer:1", "log": "TL6", "lint": "-:1:8"}[verb] in done.stdout, done.stderr


@pytest.mark.parametrize("name", ["/dev/stdin", "-"])
def test_stdin_is_read_by_both_of_its_names(name: str, tmp_path: Path) -> None:
    """`kubectl logs train | trainlaunch doctor --log /dev/stdin` has a writer too."""
    assert "TL6" in run_started("doctor", "--log", name, "--exit-code", "1", cwd=tmp_path, input=LOG).stdout
    assert "trainer:1" in run_started("init", "--from", name, cwd=tmp_path, input=LINE).stdout
    assert "-:1:8" in run_started("lint", name, cwd=tmp_path, input=UNSIZED).stdout


@pytest.mark.parametrize("verb", VERBS)
def test_a_stdin_that_is_closed_is_an_error(verb: str, tmp_path: Path) -> None:
    """Python has no stream then."""
    done = run_started(*VERBS[verb]("-"), cwd=tmp_path, preexec_fn=lambda: os.close(0))
    assert done.returncode == 2
    assert "- can't be read: it is closed" in done.stderr


def test_an_empty_log_is_the_null_device(tmp_path: Path) -> None:
    """`doctor --log /dev/null --exit-code 137` asks about the exit code alone, and that device ends at once."""
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    done = run_started("doctor", "--log", os.devnull, "--exit-code", "137", cwd=tmp_path, timeout=30)
    assert "TL118" not in done.stderr


def test_a_text_of_over_4_mib_is_not_looked_into(tmp_path: Path) -> None:
    """What is longer is data; its first part would be read as another text."""
    (tmp_path / "run.sh").write_text(LINE + "\n" * (4 << 20))
    done = run_started("init", "--from", "run.sh", cwd=tmp_path, timeout=30)
    assert (done.returncode, "error[TL393]: run.sh is larger than 4 MiB" in done.stderr) == (1, True)
