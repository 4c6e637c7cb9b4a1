"""`init` writes a job file from flags, atomically and never over another."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainlaunch.policy import read_job

from tests.conftest import ROOT, Runs


def test_flags_become_fields(trainlaunch: Runs, tmp_path: Path) -> None:
    """Each flag is one field, as it was spelled."""
    job = tmp_path / "job.yaml"
    flags = ("--name", "resnet50", "--image", "trainer@sha256:" + "a" * 64, "--cpus", "1.5", "--memory", "32g")
    assert trainlaunch("init", *flags, "--gpus", "0,1", "--write-to", str(job)).returncode == 0
    read = read_job(job)
    assert (read.name, read.image) == ("resnet50", "trainer@sha256:" + "a" * 64)
    assert (read.resources.cpus, read.resources.memory, read.resources.gpus.ids) == (1500, 32 * 2**30, ("0", "1"))


def test_init_prints_to_stdout_what_it_would_write(trainlaunch: Runs, tmp_path: Path) -> None:
    """The result is on stdout and nothing else is; the file has the same bytes."""
    printed = trainlaunch("init", "--gpus", "1", cwd=tmp_path)
    assert (printed.returncode, printed.stderr) == (0, "")
    assert trainlaunch("init", "--gpus", "1", "--write-to", "job.yaml", cwd=tmp_path).stdout == ""
    assert (tmp_path / "job.yaml").read_text() == printed.stdout


def test_all_gpus_come_with_a_number_of_processes(trainlaunch: Runs, tmp_path: Path) -> None:
    """`gpus: all` alone is an error, so the draft states the number to correct."""
    assert trainlaunch("init", "--gpus", "all", "--write-to", "job.yaml", cwd=tmp_path).returncode == 0
    assert read_job(tmp_path / "job.yaml").ranks_per_container == 1


def test_an_existing_file_is_never_overwritten(trainlaunch: Runs, tmp_path: Path) -> None:
    """Neither a file nor a dangling link; nothing else is left in the folder."""
    (tmp_path / "job.yaml").write_text("mine\n")
    (tmp_path / "link.yaml").symlink_to("nowhere")
    for name in ("job.yaml", "link.yaml"):
        done = trainlaunch("init", "--write-to", name, cwd=tmp_path)
        assert done.returncode == 2
        assert "error[TL115]" in done.stderr
    assert (tmp_path / "job.yaml").read_text() == "mine\n"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["job.yaml", "link.yaml"]


@pytest.mark.parametrize(
    ("flag", "value", "code"),
    [
        ("--memory", "8G", "TL108"),
        ("--memory", "64Mi", "TL201"),
        ("--cpus", "many", "TL107"),
        ("--gpus", "-1", "TL107"),
        ("--name", "My_Job", "TL107"),
        ("--image", "a b", "TL107"),
        ("--image", 'x"\nscript: evil', "TL107"),
        ("--memory", "8Gi}\nscript: evil", "TL108"),
    ],
)
def test_a_flag_that_can_t_be_is_the_job_file_s_own_error(
    trainlaunch: Runs, tmp_path: Path, flag: str, value: str, code: str
) -> None:
    """Exit 1 with the job file's code, nothing written, and no place in a file that doesn't exist."""
    done = trainlaunch("init", flag, value, "--write-to", "job.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"error[{code}]" in done.stderr
    assert "-->" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_script_is_named_as_the_container_sees_it(trainlaunch: Runs, tmp_path: Path) -> None:
    """Below the job file the whole folder is mounted; elsewhere the script's own folder, relative to the job file."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text("")
    (tmp_path / "jobs").mkdir()
    assert trainlaunch("init", "src/main.py", "--write-to", "job.yaml", cwd=tmp_path).returncode == 0
    assert trainlaunch("init", "src/main.py", "--write-to", "jobs/job.yaml", cwd=tmp_path).returncode == 0
    here, there = read_job(tmp_path / "job.yaml"), read_job(tmp_path / "jobs" / "job.yaml")
    assert (here.name, here.command, here.mounts[0].source) == ("src", ("python", "src/main.py"), ".")
    assert (there.command, there.mounts[0].source) == (("python", "main.py"), "../src")


def test_a_folder_with_one_letter_gives_a_name_of_two(trainlaunch: Runs, tmp_path: Path) -> None:
    """A generic script takes its folder's name, and an engine refuses a container called `w`."""
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "train.py").write_text("")
    assert trainlaunch("init", "train.py", "--write-to", "job.yaml", cwd=tmp_path / "w").returncode == 0
    assert read_job(tmp_path / "w" / "job.yaml").name == "w-job"


def test_the_draft_of_the_quickstart_names_its_loaders(trainlaunch: Runs) -> None:
    """The repository's own example: two loaders, two options."""
    done = trainlaunch("init", "examples/quickstart/train.py", cwd=ROOT)
    assert '"--workers={num_workers}", "--batch-size={batch_size}"' in done.stdout
    assert "    train: {}" in done.stdout
    assert "    test: {}" in done.stdout


@pytest.mark.parametrize(
    "words", [("init",), ("explain",), ("explain", "shm-exhausted"), ("completion", "bash")], ids=" ".join
)
def test_the_verbs_about_words_import_no_heavy_package(trainlaunch: Runs, words: tuple[str, ...]) -> None:
    """They start fast and need no engine: no docker, kubernetes, rich, jinja2 or torch."""
    done = trainlaunch(*words, env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert done.returncode == 0
    imported = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert "trainlaunch" in imported
    assert imported & {"pydantic", "rich", "docker", "kubernetes", "jinja2", "torch", "requests"} == set()
