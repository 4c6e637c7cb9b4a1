"""What takes minutes to measure isn't lost where a lock can't be written: that is told before, or it is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

import pytest
from trainlaunch.cli.arguments import measuring
from trainlaunch.cli.verbs import tune as tune_verb
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import UsageError

from tests.conftest import Runs
from tests.jobs import write_job
from tests.measure.tune.made import tuned
from tests.runners import no_file_may_grow


@pytest.fixture
def disk_fills_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the disk be full by the time that something was measured."""

    def refuse(path: Path, text: str) -> NoReturn:
        raise UsageError([Diagnostic("TL116", f"{path} can't be written: No space left on device", "make room")])

    monkeypatch.setattr(measuring, "replace_file", refuse)


@pytest.mark.parametrize("words", [("probe", "--write"), ("tune", "--write"), ("tune", "--html", "tune.html")])
def test_it_is_told_before_anything_runs(trainlaunch: Runs, tmp_path: Path, words: tuple[str, ...]) -> None:
    """On a full disk, and where the user may not write; nothing is left of the attempt."""
    write_job(tmp_path)
    before = sorted(tmp_path.iterdir())
    verb, *options = words
    done = trainlaunch(verb, "job.yaml", *options, cwd=tmp_path, preexec_fn=no_file_may_grow)
    assert done.returncode == 2
    assert "error[TL116]: " in done.stderr
    assert "probing" not in done.stderr
    assert "timing" not in done.stderr
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.usefixtures("disk_fills_up")
@pytest.mark.parametrize("output", ["text", "json"])
def test_what_was_timed_is_shown(
    trainlaunch: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    """The numbers can be stated in the job file; JSON stays one document."""
    monkeypatch.setattr(tune_verb, "_tuned", lambda *_: tuned())
    done = trainlaunch("tune", str(write_job(tmp_path)), "--write", "-o", output)
    assert done.returncode == 2
    assert "can't be written: No space left on device" in done.stderr
    if output == "json":
        document = json.loads(done.stdout)
        assert (document["written"], document["chosen"]["num_workers"]) == (None, 14)
        assert [each["code"] for each in document["findings"]] == ["TL116"]
    else:
        assert "fastest: num_workers 14" in done.stdout
        assert "`data_loader: {num_workers: 14, prefetch_factor: 4}`" in done.stdout


def test_a_stated_number_is_said_to_win_over_the_lock(
    trainlaunch: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock has no effect until the line is deleted; what a probe filled in is not stated."""
    monkeypatch.setattr(tune_verb, "_tuned", lambda *_: tuned())
    job = write_job(tmp_path, data_loader={"num_workers": 2})
    line = job.read_text().splitlines().index("  num_workers: 2") + 1
    done = trainlaunch("tune", str(job), "--write")
    assert f"what is set wins, delete it: num_workers ({job}:{line})" in " ".join(done.stdout.split())
    asked = trainlaunch("tune", str(job))
    assert "keep it: write `data_loader: {num_workers: 14, prefetch_factor: 4}`" in " ".join(asked.stdout.split())
    write_job(tmp_path)
    done = trainlaunch("tune", str(job), "--write")
    assert "plan, render and up use it for target docker\n" in done.stdout.replace("\n  ", " ")
    assert trainlaunch("plan", str(job), "-o", "json").stdout.count('"tune": "fresh"') == 1
