"""Nothing is left of a search, whatever way it ends: on Docker and by Compose; the script needs no torch to report."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from trainlaunch.measure.tune import tuning as searching

from tests.conftest import Runs
from tests.measure.tune.spoken import tuning
from tests.run.test_up import Start, ended, read_until

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("compose")]
LOADER = {"batch_size": 8, "sample": [{"shape": [16], "dtype": "float32"}], "max_workers": 4}
Tuned = Callable[..., Path]


@pytest.fixture(params=["docker", pytest.param("compose", marks=pytest.mark.long)])
def tuned(request: pytest.FixtureRequest, make_job: Callable[..., Path]) -> Tuned:
    """Write a job on each target whose script reports as a timed one does, and return its file."""

    def make(script: str, **over: Any) -> Path:
        command = ["python3", "-c", script]
        fields = {
            "shm_size": None,
            "data_loader": LOADER,
            "resources": {"cpus": 1, "memory": "2Gi"},
            "stop_grace_period": "2s",
        }
        return make_job(**{**fields, "command": command, "target": request.param, **over})

    return make


@pytest.fixture
def left(trainlaunch: Runs, job_name: str) -> Callable[[], list[str]]:
    """Return what lists the runs of a job's searches that are there."""

    def found() -> list[str]:
        runs = json.loads(trainlaunch("ps", "-o", "json").stdout)["runs"]
        return [each["job"] for each in runs if each["job"].startswith(f"{job_name}-tune-")]

    return found


@pytest.mark.parametrize(
    "in_place", [pytest.param(True, id="one-run"), pytest.param(False, id="a-run-each", marks=pytest.mark.long)]
)
def test_a_search_finds_keeps_and_leaves_nothing(
    trainlaunch: Runs, tuned: Tuned, left: Callable[[], list[str]], in_place: bool
) -> None:
    """Its lock is of its target, used by plan, render and check --strict, and stale once CPUs change."""
    job = tuned(tuning(in_place=in_place))
    done = trainlaunch("tune", str(job), "--budget", "60s", "--write", "-o", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["chosen"]["num_workers"], found["gain"]) == (2, 3.0)
    assert "its own words" not in done.stderr + done.stdout
    lock = yaml.safe_load(job.with_name("job.lock.yaml").read_text())
    assert lock["tune"][found["target"]]["num_workers"] == 2
    assert left() == []
    assert json.loads(trainlaunch("plan", str(job), "-o", "json").stdout)["num_workers"] == 2
    rendered = str(job.with_name("out"))
    assert trainlaunch("render", str(job), "--write-to", rendered).returncode == 0
    assert trainlaunch("check", "--strict", rendered).returncode == 0
    job.write_text(job.read_text().replace("cpus: 1", "cpus: 2"))
    stale = trainlaunch("plan", str(job), "-o", "json")
    assert json.loads(stale.stdout)["measured"]["tune"] == "stale"
    assert "TL729" in stale.stdout
    checked = trainlaunch("check", "--strict", rendered)
    assert (checked.returncode, "TL729" in checked.stderr) == (1, True)


@pytest.mark.parametrize(
    "number", [signal.SIGINT, *(pytest.param(each, marks=pytest.mark.long) for each in (signal.SIGTERM, signal.SIGHUP))]
)
def test_a_signal_ends_a_search_and_leaves_nothing(
    start: Start, tuned: Tuned, left: Callable[[], list[str]], number: signal.Signals
) -> None:
    """Ctrl-C, `timeout` and a closed terminal while a setting is timed: 130, and nothing is written."""
    job = tuned(tuning(before="time.sleep(100 * (setting[0] > 0))"))
    process = start("tune", str(job), "--write", "--html", str(job.with_name("tune.html")))
    read_until(process, b"      0        -", stderr=True)
    process.send_signal(number)
    code, out, err = ended(process)
    assert (code, out) == (130, ""), err
    assert left() == []
    assert {each.name for each in job.parent.iterdir()} == {"job.yaml"}


def test_a_setting_that_hangs_ends_with_the_budget(
    trainlaunch: Runs, tuned: Tuned, left: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was timed before stands."""
    monkeypatch.setattr(searching, "OVER", 1.0)
    monkeypatch.setattr("trainlaunch.cli.verbs.tune.MIN_SECONDS", 1)
    done = trainlaunch("tune", str(tuned(tuning(before="time.sleep(1000 * (setting[0] == 2))"))), "--budget", "5s")
    assert done.returncode == 0, done.stderr
    assert "the budget was over while 2 workers ran" in " ".join(done.stdout.split())
    assert "fastest: num_workers 1" in done.stdout
    assert left() == []


@pytest.mark.long  # tests/measure/tune shows it without an engine
def test_a_setting_that_ends_the_script_is_none_to_take(
    trainlaunch: Runs, tuned: Tuned, left: Callable[[], list[str]]
) -> None:
    """Its exit code stands in its row."""
    done = trainlaunch("tune", str(tuned(tuning(before="setting[0] == 2 and sys.exit(3)"))), "--budget", "20s")
    assert done.returncode == 0, done.stderr
    assert "      2        2       -   -  the script ended with exit code 3" in done.stdout
    assert left() == []
