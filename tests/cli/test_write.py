"""Files are written whole or not at all, and a writer that was killed leaves nothing for good."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from trainlaunch.cli.output.write_files import refuse_unwritable, replace_file, write_files
from trainlaunch.errors import UsageError

from tests.conftest import ROOT, Runs
from tests.jobs import write_job

# Stops where the temporary files lie, before the first gets its name.
STOPPED = """
import os, pathlib, signal, sys
pathlib.Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGSTOP)
from trainlaunch.cli.main import main
sys.exit(main())
"""


def temporaries(folder: Path) -> list[Path]:
    return sorted(folder.rglob(".trainlaunch-*"))


@contextmanager
def stopped_writer(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a `check --fix` that lives and stands still while its temporary file lies there."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "launcher")}
    with subprocess.Popen([sys.executable, "-c", STOPPED, "check", "--fix"], cwd=folder, env=environment) as writer:
        try:
            os.waitid(os.P_PID, writer.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            yield writer
        finally:
            writer.kill()


@pytest.fixture
def outdated(trainlaunch: Runs, tmp_path: Path) -> Path:
    """Return a folder with a rendering that differs from its job."""
    job = write_job(tmp_path)
    assert trainlaunch("render", job.name, "--target", "docker", "--write-to", ".", cwd=tmp_path).returncode == 0
    job.write_text(job.read_text() + "labels: {team: vision}\n")
    return tmp_path


def test_what_a_killed_check_left_is_gone_after_the_next(outdated: Path, trainlaunch: Runs) -> None:
    """Also after one that has nothing to write; one that only reads deletes nothing."""
    for differs in (True, False):
        if differs:
            with stopped_writer(outdated):
                pass
        else:
            (outdated / ".trainlaunch-abcdefgh.tmp").write_text("left")
        assert len(temporaries(outdated)) == 1
        trainlaunch("check", cwd=outdated)
        assert len(temporaries(outdated)) == 1
        assert trainlaunch("check", "--fix", cwd=outdated).returncode == 0
        assert temporaries(outdated) == []


def test_what_a_killed_render_left_is_gone_after_the_next(outdated: Path, trainlaunch: Runs) -> None:
    """Of one job, and of several."""
    shutil.copy(outdated / "job.yaml", outdated / "other.yaml")
    for jobs in (["job.yaml"], ["job.yaml", "other.yaml"]):
        words = ["render", *jobs, "--target", "docker", "--write-to", "out", "--overwrite"]
        trainlaunch(*words, cwd=outdated)
        (outdated / "out" / ".trainlaunch-abcdefgh.tmp").write_text("left")
        trainlaunch(*words, cwd=outdated)
        assert temporaries(outdated) == [], jobs


def test_a_living_writers_file_survives_the_next_check(outdated: Path, trainlaunch: Runs) -> None:
    """Both write side by side, and the second must not take the first one's text."""
    with stopped_writer(outdated) as writer:
        [before] = temporaries(outdated)
        assert trainlaunch("check", "--fix", cwd=outdated).returncode == 0
        assert temporaries(outdated) == [before]
        writer.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("name", [".trainlaunch-settings", ".trainlaunch-ABCDEFGH.tmp", ".trainlaunch-gpus.lock"])
def test_a_file_that_is_not_ours_stays(name: str, tmp_path: Path) -> None:
    """Its name only begins like ours."""
    (tmp_path / name).write_text("mine")
    write_files(tmp_path, {"a": "1"}, overwrite=False)
    assert (tmp_path / name).read_text() == "mine"


def test_a_strangers_file_a_link_and_a_fifo_of_such_a_name_stay(tmp_path: Path) -> None:
    """Another user's may be another's work; what is no file was never written here."""
    strangers, fifo, link = (tmp_path / f".trainlaunch-{each * 8}.tmp" for each in "abc")
    strangers.write_text("theirs")
    os.mkfifo(fifo)
    link.symlink_to(tmp_path / "kept")
    (tmp_path / "kept").write_text("kept")
    if os.geteuid() == 0:
        os.chown(strangers, 12345, 12345)
    replace_file(tmp_path / "a", "1")
    assert (tmp_path / "kept").read_text() == "kept"
    assert (fifo.is_fifo(), link.is_symlink()) == (True, True)
    assert strangers.exists() == (os.geteuid() == 0)


def test_a_lock_held_elsewhere_keeps_the_file(tmp_path: Path) -> None:
    """The lock tells a living writer, whatever its process is called in this namespace."""
    left = tmp_path / ".trainlaunch-abcdefgh.tmp"
    with left.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        replace_file(tmp_path / "a", "1")
        assert left.exists()
    replace_file(tmp_path / "a", "2")
    assert not left.exists()


def test_what_stands_in_the_way_is_not_waited_for(tmp_path: Path) -> None:
    """A FIFO of a stranger's folder would be, to see whether it differs."""
    os.mkfifo(tmp_path / "job.yaml")
    with pytest.raises(UsageError, match="is a FIFO"):
        write_files(tmp_path, {"job.yaml": "a"}, overwrite=False)


def test_a_link_to_itself_gives_way(tmp_path: Path) -> None:
    """`lint --write-baseline` and `check --fix` write through a link; this one leads to no file."""
    (tmp_path / "loop").symlink_to("loop")
    refuse_unwritable(tmp_path / "loop")
    replace_file(tmp_path / "loop", "1")
    assert (tmp_path / "loop").read_text() == "1"
