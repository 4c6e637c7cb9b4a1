"""Planted values of secrets are looked for in all that trainlaunch writes, and in what the engine tells of a run.

The engine's `inspect` shows a container's variables, which no client can prevent (docs/secrets.md); nothing else may.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.job.reserved import LABEL_PREFIX

from tests.conftest import Runs
from tests.local.conftest import state  # noqa: F401 - a fixture
from tests.planted import MARK, READERS, VARIABLES, secret_fields
from tests.run.conftest import SMALL, containers_of, docker, inspected
from tests.run.test_up import Start, ended, read_until

MakeJob = Callable[..., Path]


class ProcessList:
    """Every process of this host, looked at as often as possible from `with` on: what its arguments say."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        self.looks = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> ProcessList:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.is_set():
            self.looks += 1
            for each in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    arguments = each.read_bytes()
                except OSError:
                    continue
                if MARK.encode() in arguments:
                    self.found.add(arguments.decode(errors="replace"))
            time.sleep(0.01)


@pytest.fixture
def texts(trainlaunch: Runs) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run verbs with the planted variables set; none may say one of them."""

    def run(*args: str, env: dict[str, str] | None = None, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        done = trainlaunch(*args, env={**VARIABLES, **(env or {})})
        assert code is None or done.returncode == code, (args, done.stderr)
        assert MARK not in done.stdout + done.stderr, args
        return done

    return run


def planted(folder: Path, **over: Any) -> dict[str, Any]:
    """Return the fields of a job with a secret of each kind."""
    return {**secret_fields(folder, kubernetes=True), **over}


def test_no_verb_that_reads_a_job_file_says_one(
    tmp_path: Path, texts: Callable[..., subprocess.CompletedProcess[str]], job_file: Path
) -> None:
    """Plans, renderings on every target, committed ones, their check, JSON, and a job file that is refused."""
    job, out = str(job_file), tmp_path / "out"
    for target in ("docker", "compose", "kubernetes", "local"):
        texts("plan", job, "--target", target)
        texts("plan", job, "--target", target, "--output", "json")
    texts("render", job, "--target", "all")
    texts("render", job, "--target", "all", "--write-to", str(out))
    texts("check", str(out))
    rendering = next(out.glob("*.sh"))
    rendering.write_text(rendering.read_text().replace("--shm-size", "--shm-size "))
    for form in ("text", "json", "github"):
        texts("check", str(out), "--output", form, code=1)
    texts("check", str(out), "--fix", code=None)
    for wrong in ("secrets.PLAIN.env=no variable", "secrets.PLAIN.as=volume", "secrets.READ.env=READ", "shm_size=1k"):
        texts("plan", job, "--set", wrong, code=1)
        texts("plan", job, "--set", wrong, "--output", "json", code=1)
    assert not [
        each for each in tmp_path.rglob("*") if each.is_file() and "$1" not in each.name and MARK in each.read_text()
    ]


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    """Return a job that no engine needs to run."""
    from tests.jobs import write_job

    return write_job(tmp_path, **planted(tmp_path, **SMALL))


@pytest.mark.docker
def test_a_run_shows_none_but_to_its_job(
    tmp_path: Path,
    start: Start,
    make_job: MakeJob,
    job_name: str,
    texts: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    """From before `up` to after `down`: our streams, each process's arguments, labels, the engine's events and log."""
    since = f"{time.time() - 1:.0f}"
    (tmp_path / "wait").mkdir()
    mounts = [{"type": "bind", "source": "./wait", "target": "/wait"}]
    waits = ["/bin/sh", "-c", "echo ready; until [ -e /wait/over ]; do sleep 0.1; done"]
    job = make_job(**planted(tmp_path, command=waits, mounts=mounts))
    with ProcessList() as processes:
        process = start("up", str(job), **VARIABLES)
        read_until(process, b"ready\n")
        (container,) = containers_of(job_name)
        for verb in ("ps", "status", "logs"):
            texts(verb, *([] if verb == "ps" else [job_name]))
        texts("ps", "--output", "json")
        texts("status", str(job), "--output", "json")
        texts("up", str(job), code=125)  # its name is taken
        (tmp_path / "wait" / "over").touch()
        code, out, err = ended(process)
    assert (code, MARK in out + err) == (0, False)
    assert processes.looks > 20
    assert processes.found == set()
    found = inspected(container)
    assert any(MARK in each for each in found["Config"].pop("Env"))
    assert MARK not in json.dumps(found)
    assert MARK not in docker("logs", container)
    texts("wait", job_name)
    texts("down", job_name)
    events = docker("events", "--since", since, "--until", f"{time.time() + 1:.0f}", "--format", "{{json .}}")
    assert f"{LABEL_PREFIX}job" in events
    assert MARK not in events


@pytest.mark.docker
def test_the_scripts_processes_have_none_in_their_arguments(
    tmp_path: Path, make_job: MakeJob, texts: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """The shell, `cat`, docker's command line and what the engine starts, run as a user would run the text."""
    job = make_job(**planted(tmp_path, command=["/bin/sh", "-c", "sleep 1"]))
    script = texts("render", str(job)).stdout
    with ProcessList() as processes:
        done = subprocess.run(
            ["sh"],
            input=script,
            cwd=tmp_path,
            env={**os.environ, **VARIABLES},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert MARK not in done.stdout + done.stderr
    assert processes.found == set()


FAILURES: dict[str, dict[str, Any]] = {
    "another secret is missing": {"over": {"OTHER": {"env": "NOT_SET"}}},
    "no such image": {"image": "trainlaunch-test:nowhere", "pull_policy": "never"},
    "an image that no registry has": {"image": "localhost:1/nothing:1", "pull_policy": "always"},
    "more CPUs than the engine has": {"resources": {"cpus": 4096, "memory": "256Mi"}},
    "no GPU": {"resources": {"cpus": 1, "memory": "256Mi", "gpus": 1}},
    "no bind source": {"mounts": [{"type": "bind", "source": "./gone", "target": "/gone"}]},
    "a program that is not there": {"command": ["/no/such/program"]},
    "a user that the image does not know": {"user": "nobody-at-all"},
    "a folder that cannot be made": {"working_dir": "/proc/x"},
    "a limit that the engine refuses": {"ulimits": {"nofile": {"soft": 10, "hard": 2**62}}},
    "too small": {"shm_size": "4Ki", "data_loader": {"num_workers": 2, "batch_size": 1}},
    "the preflight stops": {"ulimits": {"nofile": 20}, "data_loader": {**SMALL["data_loader"], "num_workers": 2}},
}


@pytest.mark.docker
@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_a_failure_names_none(
    tmp_path: Path,
    make_job: MakeJob,
    texts: Callable[..., subprocess.CompletedProcess[str]],
    failure: dict[str, Any],
) -> None:
    """Of ours and of the engine's, whose words we quote."""
    fields = planted(tmp_path, **failure)
    fields["secrets"] |= fields.pop("over", {})
    done = texts("up", str(make_job(**fields)), code=None)
    assert done.returncode != 0, done.stderr


def test_an_engine_that_is_away_is_told_none(texts: Callable[..., Any], job_file: Path) -> None:
    """The error is about the socket."""
    done = texts("up", str(job_file), env={"DOCKER_HOST": "unix:///nonexistent/docker.sock"}, code=125)
    assert "error[TL50" in done.stderr


PRINTS = """
import os, sys, time
print("from stdout:", os.environ["PLAIN"], flush=True)
print(open(os.environ["WRITTEN_FILE"]).read(), file=sys.stderr)
time.sleep(0.5)  # so that the last line is the last on any stream
raise SystemExit(f"RuntimeError: login with {os.environ['RENAMED']} failed")
"""


@pytest.mark.docker
def test_a_diagnosis_quotes_what_a_job_printed_without_its_values(
    tmp_path: Path, make_job: MakeJob, trainlaunch: Runs
) -> None:
    """The job's own output is its own and arrives as it is; our line about it has the secret's name instead."""
    job = make_job(**planted(tmp_path, command=["python3", "-c", PRINTS]))
    done = trainlaunch("up", str(job), env=VARIABLES)
    assert done.returncode == 1
    assert VARIABLES["PLAIN"] in done.stdout
    assert done.stderr.count(VARIABLES["HOST_RENAMED"]) == 1
    assert done.stderr.count("pl4nted-written") == 1
    assert "last line: RuntimeError: login with [secret RENAMED] failed" in done.stderr


SAID = ["PLAIN", "RENAMED", "WRITTEN_TOO", "READ", "BOUND"]
SAYS_ALL = f"""
import os
values = [os.environ.get(n) or open(os.environ[n + "_FILE"], errors="replace").read() for n in {SAID}]
raise SystemExit("RuntimeError: login with " + " and ".join(each.strip() for each in values) + " failed")
"""


@pytest.mark.docker
@pytest.mark.parametrize("target", ["docker", pytest.param("compose", marks=pytest.mark.long)])
def test_who_looks_later_is_told_none_either(
    tmp_path: Path,
    make_job: MakeJob,
    job_name: str,
    trainlaunch: Runs,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    compose: str,
) -> None:
    """Of another shell and another host: the engine still has a variable's value, and this machine a file's."""
    job = make_job(**planted(tmp_path, command=["python3", "-c", SAYS_ALL]))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    done = trainlaunch("up", "--target", target, str(job), env=VARIABLES)
    assert (done.returncode, done.stderr.count(MARK)) == (1, len(SAID))
    assert not [
        each for each in (tmp_path / "state").rglob("*") if each.is_file() and MARK.encode() in each.read_bytes()
    ]
    told_of = "login with " + " and ".join(f"[secret {name}]" for name in SAID) + " failed"
    for each_state in ("state", "nothing"):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / each_state))
        told = [trainlaunch(*words, job_name) for words in READERS]
        assert not [each.args for each in told if MARK in each.stdout + each.stderr]
        quoted = [each.args for each in told if told_of in each.stdout + each.stderr]
        assert len(quoted) == len(told) - 1, quoted  # JSON of `status` has causes alone
        for verb in (["attach"], ["logs", "-f"]):
            shown = trainlaunch(*verb, job_name)  # the job's own output, then our words
            assert (shown.stdout + shown.stderr).count(MARK) == len(SAID), shown.stderr
            assert told_of in shown.stderr


@pytest.mark.usefixtures("state")
def test_a_local_runs_diagnosis_quotes_none_either(tmp_path: Path, trainlaunch: Runs) -> None:
    """Nor what its state folder keeps, the job's own output included."""
    from tests.jobs import write_job

    job = write_job(tmp_path, **planted(tmp_path, target="local", command=["python3", "-c", PRINTS], **SMALL))
    done = trainlaunch("up", str(job), env=VARIABLES)
    assert done.returncode == 1
    assert MARK not in done.stdout + done.stderr
    assert "login with [secret RENAMED] failed" in done.stderr
    kept = [each for each in (tmp_path / "state").rglob("*") if each.is_file()]
    with_values = {each.name for each in kept if MARK.encode() in each.read_bytes()}
    assert len(kept) > 2
    assert with_values == set()
