"""stdout and stderr: closed, full, in another locale, and what a machine reads after a usage error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, Runs
from tests.jobs import write_job

UTF_8 = {"encoding": "utf-8", "errors": "replace"}  # stderr follows the locale, stdout doesn't


def test_a_full_stdout_is_one_clear_error(trainlaunch: Runs, tmp_path: Path) -> None:
    """Half a manifest must not look like a whole one: exit 2 and no traceback."""
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this host has no /dev/full")
    job = str(write_job(tmp_path, image_entrypoint=[]))
    for words in (["render", job], ["plan", job, "-o", "json"]):
        with full.open("w") as stdout:
            done = trainlaunch(*words, stdout=stdout, stderr=subprocess.PIPE, capture_output=False)
        assert done.returncode == 2
        assert "error[TL116]: stdout can't be written" in done.stderr
        assert "Traceback" not in done.stderr
        assert "Exception" not in done.stderr


FULL_JOB = {"target": "local", "command": ["/bin/sh", "-c", "echo out; echo err >&2; exit 4"], "name": "full"}


@pytest.mark.parametrize("every", [2, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("descriptor", ["1", "2"])
def test_no_verb_breaks_on_a_full_disk(trainlaunch: Runs, tmp_path: Path, descriptor: str, every: int) -> None:
    """Of stdout it is said, with a code of ours or the job's own; of stderr it changes no exit code. No traceback."""
    job = str(write_job(tmp_path, **FULL_JOB))
    (tmp_path / "run.sh").write_text("docker run --gpus all python:3 python train.py --num-workers 8\n")
    assert trainlaunch("up", job).returncode == 4
    verbs = [
        (["--version"], 2, 0), (["plan", "--help"], 2, 0), (["plan", job], 2, 0),
        (["render", job, "--target", "docker"], 2, 0), (["lint", str(tmp_path / "run.sh")], 2, None),
        (["explain", "TL201"], 2, 0), (["schema"], 2, 0), (["completion", "zsh"], 2, 0),
        (["ps", "--target", "local"], 2, 0), (["status", "full"], 2, 1), (["doctor", "full"], 2, 1),
        (["logs", "full"], 2, 2), (["logs", "-f", "full"], 2, 2), (["wait", "full"], 4, 4),
        (["attach", "full"], 4, 4), (["up", job], 4, 4), (["bogus"], 2, 2), (["plan", "none.yaml"], 1, 1),
        (["down", "full", "--all"], 0, 0),
    ]  # fmt: skip
    for words, out_full, err_full in verbs[int(descriptor) % every :: every]:
        shell = f'exec "$0" -m trainlaunch "$@" {descriptor}>/dev/full'
        env = {**os.environ, "PYTHONPATH": str(ROOT / "launcher")}
        argv = ["/bin/sh", "-c", shell, sys.executable, *words]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
        expected = out_full if descriptor == "1" else err_full
        assert expected is None or done.returncode == expected, (words, done)
        assert done.returncode in {0, 1, 2, 4}, (words, done)
        assert "Traceback" not in done.stdout + done.stderr, words
        assert "Exception ignored" not in done.stdout + done.stderr, words
        if descriptor == "1" and expected == 2 and words != ["bogus"]:
            assert "stdout can't be written: No space left on device" in done.stderr, words


@pytest.mark.parametrize(("closed", "code"), [(">&-", 0), ("2>&-", 0), (">&- 2>&-", 0)])
def test_a_closed_stream_keeps_nothing_and_changes_no_exit_code(tmp_path: Path, closed: str, code: int) -> None:
    """Cron and some supervisors start programs without a stdout or stderr."""
    job = write_job(tmp_path)
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -m trainlaunch plan "$1" {closed}', sys.executable, str(job)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_results_are_utf_8_in_every_locale(trainlaunch: Runs, tmp_path: Path, encoding: str) -> None:
    """The same job gives the same bytes, whatever encoding the terminal has."""
    job = str(write_job(tmp_path, env={"CITY": "Zürich 東京"}))
    usual, other = (
        trainlaunch("render", job, "--target", "compose", env={"PYTHONIOENCODING": each}, **UTF_8)
        for each in ("utf-8", encoding)
    )
    assert usual.stdout == other.stdout
    assert "Zürich 東京" in other.stdout
    assert trainlaunch("plan", job, env={"PYTHONIOENCODING": encoding}, **UTF_8).returncode == 0


def test_a_file_name_that_is_no_utf_8_is_escaped(trainlaunch: Runs, tmp_path: Path) -> None:
    """Linux allows any bytes in a name; the comment that repeats it stays UTF-8, on stdout and in a file."""
    job = write_job(tmp_path).rename(tmp_path / "j\udcff.yaml")
    done = trainlaunch("render", str(job), encoding="utf-8")
    assert "from j\\udcff.yaml for docker" in done.stdout
    assert trainlaunch("render", str(job), "--write-to", str(tmp_path / "out")).returncode == 0
    document = json.loads(trainlaunch("plan", str(job), "-o", "json", encoding="utf-8").stdout)
    assert document["file"] == str(job)


@pytest.mark.parametrize(
    "words",
    [["probe", "-o", "json"], ["plan", "job.yaml", "--nonsense", "--output=json"], ["plan", "j", "k", "-ojson"]],
)
def test_a_usage_error_is_a_document_for_who_asks_for_json(trainlaunch: Runs, words: list[str]) -> None:
    """One document on stdout, also where the command line itself is wrong; exit 2."""
    done = trainlaunch(*words)
    assert done.returncode == 2
    assert [each["code"] for each in json.loads(done.stdout)["findings"]] == ["TL118"]
    assert "error[TL118]" in done.stderr


def test_options_before_the_verb_say_where_they_belong(trainlaunch: Runs) -> None:
    """The first word that is no option is not taken for a verb without a hint."""
    done = trainlaunch("--target", "docker", "plan", "job.yaml")
    assert done.returncode == 2
    assert "write the command first: trainlaunch plan" in done.stderr


def test_a_word_far_from_every_verb_suggests_none(trainlaunch: Runs) -> None:
    """`bogus` is no typo of `logs`."""
    assert "`trainlaunch --help` lists the commands" in trainlaunch("bogus").stderr


def test_a_secret_in_the_file_is_not_shown_with_its_error(trainlaunch: Runs, tmp_path: Path) -> None:
    """The place of the mistake is named, its line is not printed: it may hold the secret itself."""
    for secrets in (
        {"TOKEN": "hunter2"},
        {"TOKEN": {"env": "hunter2-x"}},
        {"TOKEN": {"value": "hunter2"}},
        ["hunter2"],
    ):
        done = trainlaunch("plan", str(write_job(tmp_path, secrets=secrets)))
        assert done.returncode == 1
        assert "job.yaml:" in done.stderr
        assert "hunter2" not in done.stdout + done.stderr


def test_an_excerpt_is_the_line_that_the_error_names(trainlaunch: Runs, tmp_path: Path) -> None:
    """A line separator of Unicode inside a line counts as a character, as editors count it."""
    job = tmp_path / "job.yaml"
    job.write_text('name: digits\nimage: a:1\ncommand: [x]\nenv: {A: "a\u2028b", B: c}\n', encoding="utf-8")
    assert '4 | env: {A: "a\ufffdb", B: c}' in trainlaunch("plan", str(job)).stderr
