"""Files and words made to cost time or fill a terminal: one clear error each, in bounded time and a few lines."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Runs
from tests.runners import run_started

SECONDS = 20.0  # with the start of a process on a busy machine
MOST_SAID = 40_000  # characters: ten errors of a few lines
JOB = "name: x\nimage: a:1\ncommand: [python, t.py]\ntarget: local\n"
ALIASES = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join(f'*{before}' for _ in range(8))}]\n"
    for before, after in zip("abcdefghijk", "bcdefghijkl", strict=True)
)
FILES: dict[str, str] = {
    "mappings in mappings": JOB + "env: " + "{a: " * 3000 + "1" + "}" * 3000,
    "lists in lists": JOB + "labels: " + "[" * 5000 + "]" * 5000,
    "blocks in blocks": JOB + "labels:\n" + "".join(" " * (depth + 1) + "a:\n" for depth in range(1300)),
    "aliases of aliases": ALIASES + JOB,
    "megabytes of a comment": JOB + "# " + "x" * 5_000_000,
    "a long name": JOB.replace("name: x", "name: " + "x" * 900_000),
    "a long number": JOB + "shm_size: " + "9" * 900_000,
    "a long key": JOB + "k" * 900_000 + ": 1\n",
    "many keys": JOB + "".join(f"bogus{number}: 1\n" for number in range(20_000)),
}


@pytest.fixture(params=["plan", "render", "up", "down", "policy"])
def verb(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Path], list[str]]:
    """Return the words of a verb that reads a file as job or as policy."""
    good = tmp_path / "good.yaml"
    good.write_text(JOB)
    if request.param == "policy":
        return lambda file: ["plan", str(good), "--policy", str(file)]
    return lambda file: [request.param, str(file)]


@pytest.mark.parametrize("text", FILES.values(), ids=list(FILES))
def test_a_file_costs_little_and_says_little(
    trainlaunch: Runs, tmp_path: Path, verb: Callable[[Path], list[str]], text: str
) -> None:
    """Whatever is nested, repeated or long in it; `down` may still know its job's name."""
    file = tmp_path / "job.yaml"
    file.write_text(text)
    begun = time.monotonic()
    done = trainlaunch(*verb(file))
    assert time.monotonic() - begun < SECONDS
    assert done.returncode in {1, 3, 125}, done.stderr[:1000]
    assert len(done.stdout + done.stderr) < MOST_SAID
    assert "TL901" not in done.stderr


def test_a_fifo_is_not_waited_for(tmp_path: Path, verb: Callable[[Path], list[str]]) -> None:
    """Nobody may ever write to it."""
    os.mkfifo(tmp_path / "job.yaml")
    done = run_started(*verb(tmp_path / "job.yaml"), timeout=SECONDS)
    assert done.returncode in {1, 125}
    assert "is a FIFO, which would be waited for" in done.stderr


def test_a_shells_substitution_is_a_job_file(tmp_path: Path) -> None:
    """`trainlaunch plan <(envsubst …)` has its writer."""
    (tmp_path / "job.yaml").write_text(JOB)
    reading = os.open(tmp_path / "job.yaml", os.O_RDONLY)
    try:
        done = run_started("plan", f"/dev/fd/{reading}", pass_fds=[reading], timeout=SECONDS)
    finally:
        os.close(reading)
    assert done.returncode == 0, done.stderr
    inside, outside = os.pipe()
    os.write(outside, JOB.encode())
    os.close(outside)
    try:
        done = run_started("plan", f"/dev/fd/{inside}", pass_fds=[inside], timeout=SECONDS)
    finally:
        os.close(inside)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("value", ["a" * 60 + "!", "a" * 30_000 + "!"])
@pytest.mark.parametrize("pattern", ["(a+)+", "(a|a)*", "([a-z]+)*[0-9]"])
def test_a_policys_pattern_does_not_backtrack(trainlaunch: Runs, tmp_path: Path, pattern: str, value: str) -> None:
    """A label against a pattern that would take Python's own `re` for ever."""
    (tmp_path / "policy.yaml").write_text(f'required_labels: {{team: "{pattern}"}}\n')
    (tmp_path / "job.yaml").write_text(f"{JOB}labels: {{team: {value!r}}}\n")
    begun = time.monotonic()
    done = trainlaunch("plan", str(tmp_path / "job.yaml"), "--policy", str(tmp_path / "policy.yaml"))
    assert time.monotonic() - begun < SECONDS
    assert done.returncode == 1
    assert len(done.stderr) < MOST_SAID


@pytest.mark.parametrize(
    "words",
    [("status", "x" * 100_000), ("plan", "/" + "x" * 100_000), ("x" * 100_000,), ("plan", "--" + "x" * 100_000)],
)
def test_a_long_word_is_an_error_like_a_short_one(trainlaunch: Runs, words: tuple[str, ...]) -> None:
    """A name that is longer than any file's is no bug of ours."""
    done = trainlaunch(*words)
    assert done.returncode in {1, 2}, done.stderr[:1000]
    assert len(done.stderr) < MOST_SAID
