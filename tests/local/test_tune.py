"""`trainlaunch tune` on this host: what it says, writes and refuses, and that nothing of its runs is left."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.cli.verbs import tune as verb
from trainlaunch.measure import measuring_run as measuring
from trainlaunch.run.local.backend import LocalBackend

from tests.conftest import Runs
from tests.local.conftest import MakeJob, Start
from tests.measure.tune.spoken import tuning
from tests.run.test_up import ended, read_until

LOADER = {"batch_size": 8, "sample": [{"shape": [16], "dtype": "float32"}], "max_workers": 3}
FEW = {**LOADER, "max_workers": 2}  # where each setting is a run of its own
Tuned = Callable[..., Path]
Left = Callable[[], list[str]]


@pytest.fixture
def tuned(make_job: MakeJob, tmp_path: Path) -> Tuned:
    """Write a job whose script reports as a timed one does, and return its file."""

    def make(script: str, **over: Any) -> Path:
        path = tmp_path / "reports.py"
        path.write_text(script)
        job = {
            "command": ["python3", str(path)],
            "shm_size": None,
            "data_loader": LOADER,
            "resources": {"cpus": 1, "memory": "2Gi"},
        }
        return make_job(**{**job, "stop_grace_period": "1s", **over})

    return make


@pytest.fixture
def left(state: Path) -> Left:
    """Return what lists the runs that this host has by now."""
    return lambda: [each.job for each in LocalBackend(state).runs()]


def test_the_result_is_told_and_no_run_is_left(trainlaunch: Runs, tuned: Tuned, left: Left) -> None:
    """stdout has it within 80 columns, stderr a row for each timing and nothing of the script's."""
    job = tuned(tuning())
    done = trainlaunch("tune", str(job), "--budget", "20s")
    assert done.returncode == 0, done.stderr
    assert "fastest: num_workers 2, prefetch_factor 2, 3.00 × as it is (num_workers 0)" in done.stdout
    rows = [each for each in done.stderr.splitlines() if not each.startswith("trainlaunch: ")]
    assert max(map(len, (*done.stdout.splitlines(), *rows))) <= 80
    assert done.stderr.count("trainlaunch: timing") == 3  # where stderr is no terminal: a line for each run
    assert "\x1b" not in done.stderr
    assert "its own words" not in done.stdout + done.stderr
    assert left() == []


def test_ranks_that_go_on_are_ended(
    trainlaunch: Runs, tuned: Tuned, left: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rank 0 waits for it, and the others for rank 0; no process of theirs stays."""
    monkeypatch.setattr(measuring, "LET_END_SECONDS", 0.2)
    job = tuned(tuning(in_place=False, then="time.sleep(1000)"))
    path = job.with_name("reports.py")
    both = " & ".join(f"RANK={rank} WORLD_SIZE=2 python3 {path} tuned-{os.getpid()}" for rank in (1, 0))
    job = tuned(path.read_text(), command=["/bin/sh", "-c", f"{both} & wait"], data_loader=FEW)
    begun = time.monotonic()
    done = trainlaunch("tune", str(job), "--budget", "30s", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["chosen"]["num_workers"] == 2
    assert time.monotonic() - begun < 90
    assert left() == []
    assert f"tuned-{os.getpid()}" not in "".join(_commands())


def _commands() -> list[str]:
    texts = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            texts.append(each.read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return texts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_and_leaves_nothing(start: Start, tuned: Tuned, left: Left, number: signal.Signals) -> None:
    """130; neither page nor lock."""
    job = tuned(tuning(before="time.sleep(100 * (setting[0] > 0))"))
    process = start("tune", str(job), "--write", "--html", str(job.with_name("tune.html")))
    read_until(process, b"      0        -", stderr=True)
    process.send_signal(number)
    code, out, err = ended(process)
    assert (code, out) == (130, ""), err
    assert "nothing more is timed, and nothing is written" in err
    assert left() == []
    assert not job.with_name("job.lock.yaml").exists()
    assert not job.with_name("tune.html").exists()


def test_a_script_that_ends_by_itself_goes_on_in_runs_of_its_own(trainlaunch: Runs, tuned: Tuned) -> None:
    """It trains for a few steps only: what was timed stands, and each other setting has a run of the script."""
    script = tuning(before="if setting[0] and not given: emit('tune-end', {'reason': 'script'}); sys.exit(0)")
    done = trainlaunch("tune", str(tuned(script, data_loader=FEW)), "--budget", "30s", "-o", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["chosen"]["num_workers"] == 2
    assert [each["fresh"] for each in found["timings"]] == [False, *[True] * (len(found["timings"]) - 1)]
    assert {each["num_workers"] for each in found["timings"]} >= {0, 1, 2}
    assert found["confirmed"]["fresh"]


def test_another_script_of_the_same_command_ends_nothing(trainlaunch: Runs, tuned: Tuned) -> None:
    """One that iterated a loader and ended, before the one that trains; and torchrun's own process, after it."""
    word = "emit('tune-end', {'reason': 'script', 'loaders': [{'at': 'count.py:3', 'batches': 9}]})"
    script = tuning(then=word).replace("print(", f"{word}\nprint(", 1)
    done = trainlaunch("tune", str(tuned(script)), "--budget", "20s", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["unfinished"] is None


def test_a_script_that_fails_says_its_exit_code_though_loaders_were_seen(trainlaunch: Runs, tuned: Tuned) -> None:
    """And not that it gave too few batches."""
    script = (
        "from trainlaunch_inside.marked import emit\n"
        "emit('tune-end', {'reason': 'script', 'loaders': [{'at': 'train.py:3', 'batches': 2}]})\n"
        "raise ValueError('a label is 7')"
    )
    done = trainlaunch("tune", str(tuned(script)), "--budget", "20s")
    assert done.returncode == 1
    assert "error[TL740]: the script ended with exit code 1 before a loader was timed" in done.stderr
    assert "ValueError: a label is 7" in done.stderr


def test_texts_that_are_no_unicode_are_shown_and_written(trainlaunch: Runs, tuned: Tuned) -> None:
    """A file's name in an error; nothing that a terminal obeys is passed on."""
    bad = "emit('tune-setting', {'setting': setting, 'rate': 0.0, 'error': 'a\\udcff.jpg \\x1b[31m ::error::x'})"
    script = tuning(before=f"if setting[0] == 2: {bad}", loader={"at": "tr\udcffain.py:9\x1b[2J"})
    job = tuned(script.encode("utf-8", "backslashreplace").decode())
    page = job.with_name("tune.html")
    for output in ("text", "json"):
        done = trainlaunch("tune", str(job), "--budget", "20s", "--html", str(page), "-o", output)
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout + done.stderr
    assert "\\udcff" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--budget", "19s"], "--budget 19s is below 20s"),
        (["--budget", "25h"], "--budget 25h is above 24h"),
        (["--budget", "99999999999d"], "is above 24h"),
        (["--budget", "-3m"], "expected one argument"),
        (["--budget", "3"], "'3' is not a duration"),
        (["--budget", ""], "'' is not a duration"),
        (["--html", "pipe"], "exists, and is no page that `trainlaunch tune` wrote"),
        (["--html", "."], "is a folder"),
        (["--html", "job.yaml/tune.html"], "is in a folder that does not exist"),
        (["--budgt", "3m"], "unrecognized arguments"),
    ],
)
def test_a_wrong_option_is_said_before_anything_runs(
    trainlaunch: Runs, tuned: Tuned, words: list[str], said: str
) -> None:
    """2, at once: a pipe would be read for ever."""
    job = tuned("raise SystemExit('ran')")
    os.mkfifo(job.with_name("pipe"))
    done = trainlaunch("tune", job.name, *words, cwd=job.parent)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_a_page_that_can_not_be_written_costs_no_result(trainlaunch: Runs, tuned: Tuned) -> None:
    """The folder goes away meanwhile: the result is told and kept, then the error."""
    away = "__import__('shutil').rmtree(os.path.join(os.path.dirname(sys.argv[0]), 'away'), ignore_errors=True)"
    job = tuned(tuning(before=away))
    job.with_name("away").mkdir()
    done = trainlaunch("tune", job.name, "--budget", "20s", "--write", "--html", "away/tune.html", cwd=job.parent)
    assert done.returncode == 2
    assert "error[TL116]: away/tune.html can't be written" in done.stderr
    assert "fastest: num_workers 2" in done.stdout
    assert "num_workers: 2" in job.with_name("job.lock.yaml").read_text()


def test_what_is_kept_of_a_job_with_sets_is_said_to_be_of_them(trainlaunch: Runs, tuned: Tuned) -> None:
    """The file as it stands is another job."""
    job = tuned(tuning())
    sets = ("--set", "data_loader.max_workers=2")
    done = trainlaunch("tune", str(job), "--budget", "20s", "--write", *sets)
    assert re.search(r"use\s+it\s+for\s+target\s+local,\s+with\s+the\s+same\s+--set", done.stdout), done.stdout
    assert json.loads(trainlaunch("plan", str(job), "-o", "json").stdout)["measured"]["tune"] == "stale"
    assert json.loads(trainlaunch("plan", str(job), *sets, "-o", "json").stdout)["num_workers"] == 2
    done = trainlaunch("tune", str(job), "--budget", "20s", "--write", "--set", "active_deadline=1h")
    assert "--set" not in done.stdout


def test_a_job_that_can_not_be_measured_is_refused_and_not_run_as_it_is(
    trainlaunch: Runs, tuned: Tuned, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What such a run has other than the job may be forbidden: nothing runs then, least of all the job itself."""
    monkeypatch.setattr(verb, "measuring_fields", lambda *_: ("resources.memory=1",))
    done = trainlaunch("tune", str(tuned("raise SystemExit('ran')")), "--budget", "20s")
    assert (done.returncode, "resources.memory" in done.stderr) == (1, True), done.stderr
    assert "timing" not in done.stderr


def test_two_searches_at_once_are_strangers(start: Start, trainlaunch: Runs, tuned: Tuned, left: Left) -> None:
    """Each has a name of its own; the lock is whole whoever writes last."""
    job = tuned(tuning(before="time.sleep(0.3)"))
    both = [start("tune", str(job), "--budget", "20s", "--write") for _ in range(2)]
    codes = [ended(each)[0] for each in both]
    assert codes == [0, 0]
    assert left() == []
    assert json.loads(trainlaunch("plan", str(job), "-o", "json").stdout)["measured"]["tune"] == "fresh"
