"""ENTRYPOINTs that run nothing behind them, and the lines that drop one and keep what it ran."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from trainlaunch.errors import JobFileRejected
from trainlaunch.job.entrypoint import drops_command, lines_without

from tests.jobs import job_with

DROPPING = [
    "bash",
    "/bin/sh",
    "bash -c",
    "bash -l -c",
    "bash -lc",
    "sh -c 'exec serve'",
    "python3",
    "/usr/bin/python3.11 -u",
    "python3 -c",
]
RUNNING = [
    "/opt/nvidia/nvidia_entrypoint.sh",
    "tini --",
    "bash /entrypoint.sh",
    "sh -c 'exec \"$@\"' --",
    "sh -c 'prepare; \"${@}\"' front",
    "python3 -m front",
    "python3 /front.py",
    "",
]


@pytest.mark.parametrize("line", DROPPING)
def test_a_bare_shell_or_python_runs_nothing_behind_it(line: str) -> None:
    """Measured below for those that are here."""
    assert drops_command(shlex.split(line))


@pytest.mark.parametrize("line", RUNNING)
def test_what_may_run_its_arguments_is_left_alone(line: str) -> None:
    """A file, a module or a text that uses "$@" can't be known from outside."""
    assert not drops_command(shlex.split(line))


@pytest.mark.parametrize("line", ["sh", "sh -c", "sh -ec", "sh -c 'true'", "python3", "python3 -c"])
def test_the_real_program_never_starts_what_stands_behind_it(line: str) -> None:
    """What the preflight's place would get: nothing is printed, whatever the exit code says."""
    behind = ["/bin/sh", "-c", "echo started", "trainlaunch"]
    argv = [*shlex.split(line), *behind]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert "started" not in done.stdout


@pytest.mark.parametrize(
    ("entrypoint", "command", "lines"),
    [
        (
            ["bash", "-c"],
            ["python train.py"],
            '`image_entrypoint: []` and `command: ["bash", "-c", "python train.py"]`',
        ),
        (["bash", "-c"], ["python", "train.py"], "`image_entrypoint: []`"),
        (["bash"], ["train.sh", "3"], '`image_entrypoint: []` and `command: ["bash", "train.sh", "3"]`'),
        (["bash"], ["-c", "a; b"], '`image_entrypoint: []` and `command: ["bash", "-c", "a; b"]`'),
        (["python3"], ["train.py"], '`image_entrypoint: []` and `command: ["python3", "train.py"]`'),
        (["python3"], ["-m", "trainer"], '`image_entrypoint: []` and `command: ["python3", "-m", "trainer"]`'),
        (["python3"], ["python", "train.py"], "`image_entrypoint: []`"),
        (
            ["python3", "-c"],
            ["import a; a.b()"],
            '`image_entrypoint: []` and `command: ["python3", "-c", "import a; a.b()"]`',
        ),
        (["python3"], None, "`image_entrypoint: []`"),
    ],
)
def test_the_lines_keep_what_the_entrypoint_ran(entrypoint: list[str], command: list[str] | None, lines: str) -> None:
    """The program goes in front of a command that only means something to it, and not in front of a program."""
    assert lines_without(entrypoint, command) == lines


def test_the_lines_of_the_error_make_a_job_that_is_read(tmp_path: Path) -> None:
    """Stated in the job, such an ENTRYPOINT is refused before anything starts."""
    with pytest.raises(JobFileRejected) as rejected:
        job_with(tmp_path, image_entrypoint=["python3"], command=["train.py"])
    (found,) = rejected.value.diagnostics
    assert (found.code, found.field) == ("TL107", "image_entrypoint")
    assert found.fix == 'write `image_entrypoint: []` and `command: ["python3", "train.py"]`'
    assert job_with(tmp_path, image_entrypoint=[], command=["python3", "train.py"]).image_entrypoint == ()
