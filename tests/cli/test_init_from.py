"""`init --from` on the command line: where the text comes from, what is said of it, and which texts are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainlaunch.policy import read_job

from tests.conftest import ROOT, Runs
from tests.runners import run_started

LINE = "docker run --shm-size=2g -m 8g trainer:1 python train.py\n"
SERVICES = """\
services:
  db: {image: "postgres:16"}
  train: {image: "trainer:1", shm_size: 2gb, command: [python, train.py]}
"""


def test_the_result_is_on_stdout_and_what_is_lost_on_stderr(trainlaunch: Runs, tmp_path: Path) -> None:
    """So that `> job.yaml` holds a job; --write-to writes the same bytes, and never over a file."""
    (tmp_path / "run.sh").write_text(LINE.replace("run ", "run -it "))
    printed = trainlaunch("init", "--from", "run.sh", cwd=tmp_path)
    assert printed.returncode == 0
    assert "--> run.sh:1:8" in printed.stderr
    assert "warning[TL381]: --tty was not converted" in printed.stderr
    assert trainlaunch("init", "--from", "run.sh", "--write-to", "job.yaml", cwd=tmp_path).returncode == 0
    assert (tmp_path / "job.yaml").read_text() == printed.stdout
    assert trainlaunch("init", "--from", "run.sh", "--write-to", "job.yaml", cwd=tmp_path).returncode == 2


def test_stdin_is_read_whole(tmp_path: Path) -> None:
    """A pipe from kubectl or a paste; the kind is told by what it says."""
    done = run_started("init", "--from", "-", cwd=tmp_path, input=LINE)
    assert done.returncode == 0
    (tmp_path / "job.yaml").write_text(done.stdout)
    assert read_job(tmp_path / "job.yaml").shm_size == 2 * 2**30


def test_several_are_listed_and_one_is_picked(trainlaunch: Runs, tmp_path: Path) -> None:
    """By its own name; another name is an error that lists them again."""
    (tmp_path / "compose.yaml").write_text(SERVICES)
    several = trainlaunch("init", "--from", "compose.yaml", cwd=tmp_path)
    assert several.returncode == 1
    assert "error[TL383]: compose.yaml starts 2 containers: db, train" in several.stderr
    assert "--> compose.yaml:3:3" in several.stderr
    assert "like --pick train" in several.stderr
    picked = trainlaunch("init", "--from", "compose.yaml", "--pick", "train", cwd=tmp_path)
    assert (picked.returncode, "name: train\n" in picked.stdout) == (0, True)
    other = trainlaunch("init", "--from", "compose.yaml", "--pick", "web", cwd=tmp_path)
    assert (other.returncode, "TL382" in other.stderr, "db, train" in other.stderr) == (1, True, True)


def test_flags_win_and_are_checked(trainlaunch: Runs, tmp_path: Path) -> None:
    """They are what the user types now; a wrong one is an error, not a part that is left out."""
    (tmp_path / "run.sh").write_text(LINE)
    flags = ("--name", "mine", "--image", "other:2", "--cpus", "4", "--memory", "16Gi", "--gpus", "0,1")
    assert trainlaunch("init", "--from", "run.sh", *flags, "--write-to", "job.yaml", cwd=tmp_path).returncode == 0
    job = read_job(tmp_path / "job.yaml")
    assert (job.name, job.image, job.resources.cpus, job.resources.memory) == ("mine", "other:2", 4000, 16 * 2**30)
    assert job.resources.gpus.ids == ("0", "1")
    for flag, value, code in (
        ("--memory", "8G", "TL108"),
        ("--image", "a b", "TL107"),
        ("--name", "No_Label", "TL107"),
        ("--memory", "8Gi}\nscript: evil", "TL108"),
    ):
        refused = trainlaunch("init", "--from", "run.sh", flag, value, cwd=tmp_path)
        assert (refused.returncode, f"error[{code}]" in refused.stderr, refused.stdout) == (1, True, ""), flag


@pytest.mark.parametrize(
    ("name", "content", "code", "place"),
    [
        ("compose.yaml", b"services:\n  train: {image: x\n", "TL393", "compose.yaml:3:1"),
        (
            "a.yaml",
            b"apiVersion: v1\nkind: Pod\nspec:\n  containers:\n    {{- toYaml .Values }}\n",
            "TL394",
            "a.yaml:1:1",
        ),
        ("run.sh", b"docker run \xff\xfe trainer:1\n", "TL393", "run.sh:1:1"),
        ("train.py", b"print(1)\n", "TL382", "train.py:1:1"),
        ("empty", b"", "TL382", "empty:1:1"),
        ("nul", b"\0" * 100, "TL382", "nul:1:1"),
        ("run.sh", b"echo docker\n", "TL382", "run.sh:1:1"),
    ],
)
def test_a_text_that_can_not_be_taken_over_is_one_error(
    name: str, content: bytes, code: str, place: str, trainlaunch: Runs, tmp_path: Path
) -> None:
    """With its place, and nothing on stdout."""
    (tmp_path / name).write_bytes(content)
    done = trainlaunch("init", "--from", name, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("error[") == 1
    assert f"error[{code}]" in done.stderr
    assert f"--> {place}" in done.stderr


@pytest.mark.parametrize("name", ["ci.github-actions.yaml", "ci.gitlab-ci.yml", "devcontainer.json", "ci.Dockerfile"])
def test_a_text_for_a_tool_of_others_names_its_job_file(name: str, trainlaunch: Runs, tmp_path: Path) -> None:
    """It is not taken back half; where it came from is in its header."""
    done = trainlaunch("init", "--from", str(ROOT / "tests" / "render" / "golden" / "ci" / name), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "error[TL382]" in done.stderr
    assert "rendered from: job.yaml" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [("--from", "nowhere"), ("--from", "."), ("--pick", "train"), ("train.py", "--from", "run.sh")],
)
def test_wrong_arguments_are_usage(arguments: tuple[str, ...], trainlaunch: Runs, tmp_path: Path) -> None:
    """A file that is not there, a folder, a name without a text, two sources."""
    (tmp_path / "run.sh").write_text(LINE)
    done = trainlaunch("init", *arguments, cwd=tmp_path)
    assert (done.returncode, "TL118" in done.stderr, done.stdout) == (2, True, "")


def test_hostile_text_is_shown_and_not_obeyed(trainlaunch: Runs, tmp_path: Path) -> None:
    """Control characters of a text reach neither the terminal nor the job file's structure."""
    line = "docker run --shm-size=1g --name 'a\x1b[31mb' -e 'A=x\nscript: evil' --bad '\x1b]0;t\x07' trainer:1 x\n"
    (tmp_path / "run.sh").write_text(line)
    done = trainlaunch("init", "--from", "run.sh", "--write-to", "job.yaml", cwd=tmp_path)
    assert "\x1b" not in done.stderr
    job = read_job(tmp_path / "job.yaml")
    assert job.env["A"] == "x\nscript: evil"
    assert job.script is None
