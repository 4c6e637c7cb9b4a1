"""RUN, owners and `ps` on runs of this host: whose run is taken, and what a job file still names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Runs
from tests.local.conftest import MakeJob

NO_ENGINE = {"DOCKER_HOST": "unix:///nonexistent"}
HERE = ("--target", "local")
BOB = {**NO_ENGINE, "TRAINLAUNCH_OWNER": "bob@lab"}


@pytest.fixture
def verb(trainlaunch: Runs) -> Runs:
    """Run a verb where no engine answers."""

    def run(*words: str, env: dict[str, str] | None = None) -> object:
        return trainlaunch(*words, env=env or NO_ENGINE)

    return run  # type: ignore[return-value]


def started(verb: Runs, job: Path, *options: str, env: dict[str, str] | None = None) -> str:
    """Start a job and return its run's id."""
    name = verb("up", "-d", str(job), *options, env=env).stdout.strip()
    listed = json.loads(verb("ps", "-o", "json").stdout)["runs"]
    found: str = next(each["run"] for each in listed if each["name"] == name)
    return found


def test_down_takes_one_run_and_all_takes_the_rest(verb: Runs, make_job: MakeJob, job_name: str, state: Path) -> None:
    """Two that run are refused with a list; one by the start of its id; then the last, ended ones stay until --all."""
    job = make_job(command=["sleep", "60"])
    ended = make_job(command=["true"])
    assert verb("up", str(ended)).returncode == 0
    job = make_job(command=["sleep", "60"])
    one, two = started(verb, job), started(verb, job, "--name", f"{job_name}-b")
    refused = verb("down", job_name)
    assert refused.returncode == 2
    assert "error[TL119]" in refused.stderr
    assert f"\n          {one}  {job_name}  running" in refused.stderr
    assert verb("down", one[:5]).returncode == 0
    assert verb("down", job_name).returncode == 0
    assert [each.name for each in state.glob("*/*") if two in each.name] == []
    assert len(list(state.glob("*/*"))) == 1
    assert verb("down", job_name, "--all").returncode == 0
    assert list(state.glob("*/*")) == []


def test_somebody_elses_run_is_left_alone(verb: Runs, make_job: MakeJob, job_name: str, state: Path) -> None:
    """Every verb says whose it is; `up` neither takes its name nor removes it when its ttl is over."""
    job = make_job(command=["true"], ttl_after_finished="1s")
    assert verb("up", str(job), env=BOB).returncode == 0
    for words, code in ((("status",), 3), (("logs",), 3), (("wait",), 125), (("down", "--all"), 3)):
        done = verb(words[0], job_name, *words[1:])
        assert (done.returncode, "bob@lab" in done.stderr) == (code, True), done.stderr
    assert verb("down", job_name).returncode == 2
    again = verb("up", str(job))
    assert (again.returncode, "TL506" in again.stderr) == (125, True)
    assert len(list(state.glob("*/*"))) == 1
    assert verb("status", job_name, "--owner", "bob@lab").returncode == 0
    assert "bob@lab" in verb("ps").stdout
    assert verb("ps", "--owner", "eve").stdout == ""
    assert verb("down", job_name, "--owner", "eve").returncode == 3
    assert verb("down", job_name, "--owner", "any").returncode == 0


def test_a_file_that_is_no_job_any_more_names_its_runs(verb: Runs, make_job: MakeJob, state: Path) -> None:
    """A typo in a job that runs must not keep it from being ended."""
    job = make_job(command=["sleep", "60"])
    started(verb, job)
    job.write_text(job.read_text().replace("command:", "comand:") + "\nx: [\n")
    done = verb("down", str(job))
    assert done.returncode == 0
    assert "is not a job that can run (TL" in done.stderr
    assert list(state.glob("*/*")) == []


def test_a_malformed_run_touches_nothing(verb: Runs, make_job: MakeJob, state: Path) -> None:
    """`down '*'` used to remove the runs of every job of this host."""
    assert verb("up", str(make_job(command=["true"]))).returncode == 0
    for name in ("down", "status", "logs", "wait"):
        for typed in ("", "*", "?"):
            done = verb(name, typed, *HERE)
            assert (done.returncode, "TL118" in done.stderr) == (2, True), (name, typed)
            assert len(list(state.glob("*/*"))) == 1, (name, typed)


def test_ps_fits_80_columns_and_shows_what_runs(
    verb: Runs, make_job: MakeJob, job_name: str, nothing_is_left: Callable[[], None]
) -> None:
    """Names are cut, the run's id is not; --running leaves ended ones out; names are what completion offers."""
    long_owner = {**NO_ENGINE, "TRAINLAUNCH_OWNER": f"{'somebody-' * 9}@host"}
    run = started(verb, make_job(command=["sleep", "60"]), env=long_owner)
    listed = verb("ps")
    assert max(map(len, listed.stdout.splitlines())) == 80
    assert listed.stdout.split()[:8] == ["JOB", "RUN", "OWNER", "STATE", "EXIT", "AGE", "SHM", "TARGET"]
    assert run in listed.stdout
    assert verb("ps", "-o", "names").stdout.split() == [job_name, run]
    assert verb("ps", "--running", "-o", "names").stdout.split() == [job_name, run]
    assert verb("down", run, "--owner", "any").returncode == 0
    assert verb("up", str(make_job(command=["true"]))).returncode == 0
    assert verb("ps", "--running").stdout == ""
    nothing_is_left()
