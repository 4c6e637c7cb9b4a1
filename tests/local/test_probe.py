"""`trainlaunch probe` as a user runs it: what it prints, keeps and leaves, with a script that reports by itself."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.cli.arguments import measuring
from trainlaunch.cli.verbs import probe as verb
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import UsageError
from trainlaunch.measure import measuring_run
from trainlaunch.run.local.backend import LocalBackend

from tests.conftest import Runs
from tests.local.conftest import MakeJob, Start
from tests.measure.spoken import a_loader, a_probe, reporting
from tests.run.test_up import ended, read_until

FINDING = {"kind": "finding", "rank": 0, "pid": 7, "defect": "loaders-differ", "loader": 0, "place": "train.py:3"}

Probed = Callable[..., Path]
Left = Callable[[], list[str]]


@pytest.fixture
def probed(make_job: MakeJob, tmp_path: Path) -> Probed:
    """Write a job whose script reports these records, and return its file."""

    def make(*records: dict[str, Any], then: str = "", **over: Any) -> Path:
        script = tmp_path / "reports.py"
        script.write_text(reporting(*records, then=then))
        return make_job(command=["python3", str(script)], **{"data_loader": {}, **over})

    return make


def widest(text: str) -> int:
    """Return the columns of the widest line that could be broken: a path, or a command to paste, may be longer."""
    lines = (re.sub("`[^`]*`", "``", line) for line in text.splitlines())
    return max(len(line) for line in lines if len(line.split()) > 1)


@pytest.fixture
def left(state: Path) -> Left:
    """Return what lists the runs that this host has by now."""
    return lambda: [each.job for each in LocalBackend(state).runs()]


def test_a_probe_says_what_was_seen_and_how_to_keep_it(trainlaunch: Runs, probed: Probed, left: Left) -> None:
    """stdout is the result, the job's own output goes to stderr, records nowhere, and no run is left."""
    job_file = probed(*a_probe())
    done = trainlaunch("probe", str(job_file))
    assert done.returncode == 0, done.stderr
    assert "train.py:48 *  2        3.0 MiB  2        2       10.0 ms  1.0 ms  200.0 ms" in done.stdout
    assert "--target local --write` keeps it in job.lock.yaml, or set" in " ".join(done.stdout.split())
    assert "batch_bytes: {size: 3073Ki, tensors: 2}" in done.stdout
    assert "trained" in done.stderr
    assert "trained" not in done.stdout
    assert "\x1e" not in done.stdout + done.stderr
    assert widest(done.stdout) <= 80
    assert not job_file.with_name("job.lock.yaml").exists()
    assert left() == []


def test_warnings_alone_do_not_fail_what_is_kept(trainlaunch: Runs, probed: Probed) -> None:
    """So that `probe --write && up` goes on; without --write they end with 1, and an error does in both."""
    facts = {"count": 1, "num_workers": 2, "threads": [{"name": "logger", "at": "train.py:9", "package": ""}]}
    warned = {**FINDING, "defect": "threads-before-fork", "loader": None, "facts": facts}
    hangs = {"waited": 9, "num_workers": 2, "batches": 1, "at": "", "threads": [], "start_method": "fork"}
    wrong = {**FINDING, "defect": "worker-hang", "facts": hangs}
    job_file = probed(warned, *a_probe())
    assert [trainlaunch("probe", str(job_file), *words).returncode for words in ((), ("--write",))] == [1, 0]
    assert trainlaunch("probe", str(probed(wrong, *a_probe())), "--write").returncode == 1


def test_a_death_in_checks_is_not_the_jobs(trainlaunch: Runs, probed: Probed) -> None:
    """What was read of batches is kept, and nobody is told to give the job more memory."""
    *told, end = a_probe()
    seen = {"kind": "batches-end", "rank": 0, "pid": 7, "reason": end["reason"], "seconds": end["seconds"]}
    job_file = probed(*told, seen, then="os.kill(os.getpid(), 9)")
    done = trainlaunch("probe", str(job_file), "--write")
    assert "the run ended while probe looked for defects; what it had read of batches stands" in done.stderr
    assert "TL6" not in done.stderr
    assert done.returncode == 0
    assert "keeps" in done.stdout or "wrote" in done.stdout


def test_what_is_kept_is_planned(trainlaunch: Runs, probed: Probed) -> None:
    """plan says where it came from; a second probe writes the same bytes."""
    job_file = probed(*a_probe())
    done = trainlaunch("probe", str(job_file), "--write")
    assert done.returncode == 0, done.stderr
    assert f"wrote {job_file.parent}/job.lock.yaml: plan" in " ".join(done.stdout.split())
    lock = job_file.with_name("job.lock.yaml")
    text = lock.read_text()
    plan = json.loads(trainlaunch("plan", str(job_file), "-o", "json").stdout)
    assert plan["measured"] == {"probe": "fresh", "tune": None}
    assert plan["shm"]["unsized"] is False
    assert plan["num_workers"] == 2
    assert plan["shm"]["need"] == 6 * ((3 << 20) + 4096) + 14 * 4096
    trainlaunch("probe", str(job_file), "--write")
    assert lock.read_text() == text


@pytest.mark.parametrize("output", ["text", "json"])
def test_what_was_seen_is_shown_where_it_can_not_be_kept(
    trainlaunch: Runs, probed: Probed, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    """The disk is full by then: the numbers can be stated in the job file."""

    def refuse(path: Path, text: str) -> None:
        raise UsageError([Diagnostic("TL116", f"{path.name} can't be written: No space left on device", "make room")])

    monkeypatch.setattr(measuring, "replace_file", refuse)
    done = trainlaunch("probe", str(probed(*a_probe())), "--write", "-o", output)
    assert done.returncode == 2
    if output == "json":
        found = json.loads(done.stdout)
        assert [each["code"] for each in found["findings"]] == ["TL116"]
        assert (found["written"], found["shm"]["need"]) == (None, 6 * ((3 << 20) + 4096) + 14 * 4096)
    else:
        assert "error[TL116]: job.lock.yaml can't be written: No space left on device" in done.stdout
        assert "batch_bytes: {size: 3073Ki, tensors: 2}" in done.stdout


def test_json_has_loaders_findings_and_the_part_of_the_lock(trainlaunch: Runs, probed: Probed) -> None:
    """One document, whatever the script prints."""
    facts = {"seen": 2, "stated": 1, "names": ["train"], "places": ["train.py:3"]}
    done = trainlaunch("probe", str(probed(*a_probe(), {**FINDING, "facts": facts})), "-o", "json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["schema_version"] == 3
    (finding,) = found["findings"]
    assert (finding["code"], finding["defect"], finding["loader"], finding["place"]) == (
        "TL723",
        "loaders-differ",
        0,
        "train.py:3",
    )
    assert finding["facts"] == facts
    assert found["probe"]["loaders"] == [
        {"at": "train.py:48", "num_workers": 2, "batches_held": 2, "batch": {"storages": [3 << 20, 512]}}
    ]
    assert set(found["probe"]) == {
        *(
            "input",
            "forced_input",
            "target",
            "torch",
            "python",
            "start_method",
            "loaders_run",
            "batches_seen",
            "loaders",
        ),
        "dataset_tensor_bytes",
    }
    assert found["shm"]["need"] == 6 * ((3 << 20) + 4096) + 14 * 4096
    assert found["loaders"][0]["batches"] == 32


def test_findings_are_framed_within_80_columns_and_exit_1(trainlaunch: Runs, probed: Probed) -> None:
    """Also where the container's facts don't fit, or spell what a terminal obeys."""
    hostile = {**FINDING, "place": "\x1b[31mred.py:1\n::error::x", "facts": {"seen": "?"}}
    done = trainlaunch("probe", str(probed(*a_probe(a_loader(at=f"{'long/' * 30}train.py:48")), hostile)))
    assert done.returncode == 1
    assert "warning[TL723]: " in done.stdout
    assert "trainlaunch explain TL723" in done.stdout
    assert "\x1b" not in done.stdout
    assert "\n::error::" not in done.stdout
    assert widest(done.stdout) <= 80


def test_another_number_of_loaders_is_found_and_not_written(trainlaunch: Runs, probed: Probed) -> None:
    """The job file names one."""
    job_file = probed(*a_probe(a_loader(0), a_loader(1)))
    done = trainlaunch("probe", str(job_file), "--write")
    assert done.returncode == 1
    assert "the script ran 2 loaders (train.py:48, train.py:49)" in " ".join(done.stdout.split())
    assert "nothing is kept" in done.stdout
    assert not job_file.with_name("job.lock.yaml").exists()


@pytest.mark.parametrize(
    ("then", "says"),
    [
        ("", "ended with exit code 0 before any DataLoader gave a batch"),
        ("raise SystemExit(3)", "ended with exit code 3 before any DataLoader gave a batch"),
    ],
)
def test_a_script_without_a_loader_is_told_kindly(
    trainlaunch: Runs, probed: Probed, then: str, says: str, left: Left
) -> None:
    """What to do differs: look at its own words, or at where its loader is built."""
    done = trainlaunch("probe", str(probed(then=then)), "--write")
    assert done.returncode == 1
    assert "TL728" in done.stdout
    assert says in " ".join(done.stdout.split())
    document = json.loads(trainlaunch("probe", str(probed(then=then)), "-o", "json").stdout)
    assert [each["code"] for each in document["findings"]] == ["TL728"]
    assert document["probe"] is None
    assert left() == []


def test_a_job_without_loaders_is_right_to_have_none(trainlaunch: Runs, probed: Probed) -> None:
    """`data_loader: none`: nothing is wrong, and a loader is."""
    done = trainlaunch("probe", str(probed(data_loader="none")))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "as `data_loader: none` says" in done.stderr
    done = trainlaunch("probe", str(probed(*a_probe(), data_loader="none")))
    assert (done.returncode, "TL723" in done.stdout) == (1, True)


def test_a_script_that_fails_after_all_was_measured_is_told(trainlaunch: Runs, probed: Probed) -> None:
    """What was measured stands; with --through its loops were cut, which a script may not like."""
    records = a_probe()
    records[-1]["reason"] = "script"
    done = trainlaunch("probe", str(probed(*records, then="sys.exit(3)")), "--through")
    assert done.returncode == 0
    assert "the script itself ended with exit code 3" in done.stderr


def test_a_deadline_ends_a_script_that_loads_nothing(trainlaunch: Runs, probed: Probed, left: Left) -> None:
    """The job's own, else half an hour after --seconds."""
    done = trainlaunch("probe", str(probed(then="time.sleep(100)", active_deadline="2s", stop_grace_period="1s")))
    assert done.returncode == 1
    assert "was stopped at its active_deadline" in " ".join(done.stdout.split())
    assert left() == []


def test_ranks_that_go_on_are_ended(
    trainlaunch: Runs, probed: Probed, monkeypatch: pytest.MonkeyPatch, left: Left
) -> None:
    """Rank 0 has what it needs; what the others print as they die is nobody's business."""
    monkeypatch.setattr(measuring_run, "LET_END_SECONDS", 0.2)
    begun = time.monotonic()
    done = trainlaunch(
        "probe", str(probed(*a_probe(), then="print('last words', file=sys.stderr, flush=True); time.sleep(100)"))
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - begun < 60
    assert "last words" not in done.stderr
    assert left() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_leaves_nothing(
    start: Start, trainlaunch: Runs, probed: Probed, number: signal.Signals, left: Left
) -> None:
    """Ctrl-C, `timeout`, a closed terminal: 130, no run, no lock."""
    job_file = probed(then="time.sleep(100)", stop_grace_period="1s")
    process = start("probe", str(job_file), "--write")
    read_until(process, b"trained\n", stderr=True)
    process.send_signal(number)
    code, out, err = ended(process)
    assert code == 130, err
    assert out == ""
    assert left() == []
    assert not job_file.with_name("job.lock.yaml").exists()


def kill_probe(start: Start, job_file: Path) -> None:
    """Start a probe, and kill it as it measures."""
    process = start("probe", str(job_file))
    read_until(process, b"trained\n", stderr=True)
    process.kill()
    process.wait()


def test_a_probe_that_nobody_keeps_is_named_by_the_next(
    start: Start, trainlaunch: Runs, probed: Probed, left: Left
) -> None:
    """After a SIGKILL of trainlaunch; `down` removes it, and a run of another job is none of its business."""
    job_file = probed(then="time.sleep(100)", stop_grace_period="1s")
    kill_probe(start, job_file)
    (run,) = left()
    probed(*a_probe())
    done = trainlaunch("probe", str(job_file))
    assert f"{run} measured the same job and was not removed; `trainlaunch down {run}` removes it" in done.stderr
    assert trainlaunch("down", run).returncode == 0
    assert left() == []
    assert "was not removed" not in trainlaunch("probe", str(job_file)).stderr


def test_down_of_the_job_takes_what_a_killed_probe_left(
    start: Start, trainlaunch: Runs, probed: Probed, left: Left
) -> None:
    """Nobody knows the name that a probe gave its run; somebody else's stays."""
    job_file = probed(then="time.sleep(100)", stop_grace_period="1s")
    kill_probe(start, job_file)
    alien = trainlaunch("down", str(job_file), env={"TRAINLAUNCH_OWNER": "somebody@else"})
    assert alien.returncode == 2
    assert "error[TL119]" in alien.stderr
    assert len(left()) == 1
    assert trainlaunch("down", str(job_file)).returncode == 0
    assert left() == []


def test_a_damaged_lock_stops_it_before_anything_runs(trainlaunch: Runs, probed: Probed) -> None:
    """Its other parts are somebody's."""
    job_file = probed(*a_probe())
    job_file.with_name("job.lock.yaml").write_text("version: 2\nprobe: {}\n")
    done = trainlaunch("probe", str(job_file), "--write")
    assert done.returncode == 1
    assert "error[TL126]" in done.stderr
    assert "trained" not in done.stderr
    assert job_file.with_name("job.lock.yaml").read_text() == "version: 2\nprobe: {}\n"


def test_a_lock_in_braces_is_left_alone(trainlaunch: Runs, probed: Probed) -> None:
    """Its parts share a line, so one of them can't be replaced; that is said before anything runs."""
    job_file = probed(*a_probe())
    lock = job_file.with_name("job.lock.yaml")
    lock.write_text("{version: 2, images: {}}\n")
    done = trainlaunch("probe", str(job_file), "--write")
    assert (done.returncode, "error[TL126]" in done.stderr) == (1, True)
    assert "trained" not in done.stderr
    assert lock.read_text() == "{version: 2, images: {}}\n"


def test_the_settings_reach_the_script(trainlaunch: Runs, probed: Probed) -> None:
    """And --through says first what then runs."""
    then = "print(os.environ['TRAINLAUNCH_PROBE'], file=sys.stderr)"
    words = ("--batches", "5", "--seconds", "7", "--through")
    done = trainlaunch("probe", str(probed(then=then)), *words)
    assert '{"batches": 5, "seconds": 7, "through": true, "deadline": 1927' in done.stderr
    assert "its own saving and evaluation run" in done.stderr


@pytest.mark.parametrize("words", [("--batches", "0"), ("--seconds", "-1"), ("--batches", "many")])
def test_numbers_are_from_1(trainlaunch: Runs, probed: Probed, words: tuple[str, str]) -> None:
    """Exit 2, with what it takes."""
    done = trainlaunch("probe", str(probed()), *words)
    assert done.returncode == 2
    assert "whole number from 1" in done.stderr


def test_help_says_what_runs(trainlaunch: Runs) -> None:
    """Before anyone starts a script that writes."""
    told = " ".join(trainlaunch("probe", "--help").stdout.split())
    assert " ".join(verb.WHAT_RUNS.split()) in told
