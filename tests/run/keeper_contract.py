"""What a detached run has on every target of this machine: a keeper, and the same causes from every verb.

A test module subclasses KeeperContract and gives `make_job`, `job_name`, `trainlaunch` and `start` of its target;
where a target runs its containers as another does, KeeperBasics are enough by default.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.run.base.private_files import state_root

from tests.conftest import Runs
from tests.run.gate import Gate
from tests.run.test_up import ended, read_until

MakeJob = Callable[..., Path]
Start = Callable[..., "subprocess.Popen[bytes]"]
SAVES = "trap 'echo saved; exit 5' TERM; echo ready; while :; do sleep 0.1; done"


def status_of(trainlaunch: Runs, job: str) -> dict[str, Any]:
    """Return what `status` says of a job, as its JSON."""
    found: dict[str, Any] = json.loads(trainlaunch("status", job, "-o", "json").stdout)
    return found


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.1)


def causes(text: str) -> list[str]:
    """Return what a verb said of an end: its causes, or the bare evidence."""
    frames = re.findall(r"^cause\[.*(?:\n   = .*)*", text, re.MULTILINE)
    return [*frames, *re.findall(r"no known cause(?:\n   = .*)*", text)]


def assert_each_verb_gives_the_same_causes(trainlaunch: Runs, job: str) -> None:
    """`up`, `wait`, `status`, `logs -f` and `attach`, to the letter."""
    first = causes(trainlaunch("up", job).stderr)
    assert len(first) > 0
    for verb in (["wait"], ["logs", "-f"], ["attach"]):
        assert causes(trainlaunch(*verb, job).stderr) == first, verb
    assert causes(trainlaunch("status", job).stdout) == first


class KeeperBasics:
    """Tests by the command line only: what making, following and reading containers in another way could break."""

    @pytest.fixture
    def gate(self, tmp_path: Path) -> Gate:
        """Return a gate that is closed."""
        return Gate.made_in(tmp_path)

    @pytest.fixture(autouse=True)
    def _ends_keepers(self, trainlaunch: Runs, job_name: str) -> Iterator[None]:
        """Leave no keeper of a failed test behind."""
        yield
        trainlaunch("down", job_name)

    def test_further_attempts_are_made_waited_for_and_logged(
        self, start: Start, trainlaunch: Runs, make_job: MakeJob, gate: Gate
    ) -> None:
        """`up -d`, `logs -f` and `wait` give what `up` gives: the last attempt's code.

        Each attempt has a log of its own, and one that was not made is named with those that there are. The last
        lines are two: the preflight's on stderr may reach the engine after the job's own.
        """
        script = f"echo in $TRAINLAUNCH_RUN_ID; {gate.waits}; exit 4"
        job = str(make_job(command=["/bin/sh", "-c", script], mounts=gate.mounts, restart={"max_attempts": 2}))
        done = trainlaunch("up", "-d", job)
        assert done.returncode == 0, done.stderr
        following = start("logs", "-f", job)
        seen = read_until(following, b"\n").decode()
        gate.open()
        code, rest, err = ended(following)
        assert code == 4
        assert "attempt 1 of 2 ended with exit code 4; starting attempt 2" in err
        assert trainlaunch("wait", job).returncode == 4
        status = status_of(trainlaunch, job)
        assert (status["attempt"], status["exit_code"]) == (2, 4)
        first, second = (trainlaunch("logs", job, "--attempt", number).stdout for number in "12")
        assert (first[:3], second[:3], seen + rest) == ("in ", "in ", first + second)
        assert first != second
        assert trainlaunch("logs", job, "--timestamps").stdout.endswith(f"Z {second}")
        assert trainlaunch("logs", job, "--since", "1h", "--tail", "2").stdout == second
        third = trainlaunch("logs", job, "--attempt", "3")
        assert (third.returncode, third.stdout) == (3, "")
        assert "has no attempt 3" in third.stderr
        assert "it has 1, 2" in third.stderr


class KeeperContract(KeeperBasics):
    """All of it."""

    def test_attach_takes_over_where_no_keeper_lives(
        self, start: Start, trainlaunch: Runs, make_job: MakeJob, job_name: str, gate: Gate
    ) -> None:
        """`status` says what is off; Ctrl-C in `attach` leaves the run with the new keeper, which goes on."""
        script = f"echo try; {gate.waits}; exit 4"
        job = str(make_job(command=["/bin/sh", "-c", script], mounts=gate.mounts, restart={"max_attempts": 2}))
        assert trainlaunch("up", "-d", job).returncode == 0
        first = status_of(trainlaunch, job)["keeper"]["pid"]
        os.kill(first, signal.SIGKILL)
        until(lambda: status_of(trainlaunch, job)["keeper"] is None)
        told = trainlaunch("status", job).stdout
        assert "supervisor none on this host, so restart.max_attempts 2 is off" in told
        assert f"`trainlaunch attach {job_name}` starts one" in told
        attached = start("attach", job)
        read_until(attached, b"try\n")
        attached.send_signal(signal.SIGINT)
        code, _, err = ended(attached)
        assert (code, f"trainlaunch down {job_name}" in err) == (130, True)
        assert "supervises the run from now on" in err
        second = status_of(trainlaunch, job)["keeper"]["pid"]
        assert second not in {first, attached.pid}
        again = start("attach", job)
        read_until(again, b"try\n")
        gate.open()
        assert ended(again)[0] == 4
        assert status_of(trainlaunch, job)["attempt"] == 2

    def test_the_deadline_is_enforced(self, trainlaunch: Runs, make_job: MakeJob) -> None:
        """The job saves its state, no attempt follows, and every verb names the deadline."""
        limits = {"active_deadline": "3s", "restart": {"max_attempts": 3}}
        job = str(make_job(command=["/bin/sh", "-c", SAVES], **limits))
        assert trainlaunch("up", "-d", job).returncode == 0
        waited = trainlaunch("wait", job)
        assert waited.returncode == 5
        assert "active_deadline stopped the job" in waited.stderr
        assert trainlaunch("logs", job).stdout == "ready\nsaved\n"
        status = status_of(trainlaunch, job)
        assert (status["attempt"], [each["code"] for each in status["causes"]]) == (1, ["TL611"])

    def test_a_run_is_removed_when_its_ttl_is_over(self, trainlaunch: Runs, make_job: MakeJob, job_name: str) -> None:
        """No other `up` need come for it."""
        job = str(make_job(command=["/bin/sh", "-c", "exit 0"], ttl_after_finished="1s"))
        assert trainlaunch("up", "-d", job).returncode == 0
        until(lambda: job_name not in trainlaunch("ps").stdout)

    def test_down_between_two_attempts_is_the_end(self, trainlaunch: Runs, make_job: MakeJob, job_name: str) -> None:
        """The keeper makes no attempt of a run that was taken down while it waited."""
        restart = {"max_attempts": 2, "backoff": "5s"}
        job = str(make_job(command=["/bin/sh", "-c", "exit 4"], restart=restart))
        assert trainlaunch("up", "-d", job).returncode == 0
        until(lambda: "in 5s (restart.backoff)" in str(status_of(trainlaunch, job)["messages"]))
        keeper = status_of(trainlaunch, job)["keeper"]["pid"]
        assert trainlaunch("down", job_name).returncode == 0
        until(lambda: not Path("/proc", str(keeper)).exists())
        assert job_name not in trainlaunch("ps").stdout

    def test_secrets_are_in_the_keepers_memory_alone(self, trainlaunch: Runs, make_job: MakeJob, gate: Gate) -> None:
        """The second attempt has the value; the keeper's arguments, environment and files have not."""
        script = f"case $TOKEN in s3*cr3t) echo arrived ;; esac; {gate.waits}; exit 4"
        fields = {"secrets": {"TOKEN": {"env": "HOST_TOKEN"}}, "mounts": gate.mounts, "restart": {"max_attempts": 2}}
        job = str(make_job(command=["/bin/sh", "-c", script], **fields))
        assert trainlaunch("up", "-d", job, env={"HOST_TOKEN": "s3 cr3t"}).returncode == 0
        keeper = Path("/proc", str(status_of(trainlaunch, job)["keeper"]["pid"]))
        seen = (keeper / "environ").read_bytes() + (keeper / "cmdline").read_bytes()
        kept = [each.read_bytes() for each in state_root().parent.glob("kept/*/*")]
        assert len(kept) > 0
        assert b"s3 cr3t" not in seen + b"".join(kept)
        gate.open()
        assert trainlaunch("wait", job).returncode == 4
        logs = [trainlaunch("logs", job, "--attempt", number).stdout for number in "12"]
        assert logs == ["arrived\n"] * 2

    def test_a_secret_that_is_missing_costs_the_further_attempts_alone(
        self, start: Start, trainlaunch: Runs, make_job: MakeJob, gate: Gate
    ) -> None:
        """Who attaches without it is told, and keeps nothing; the last attempt's code stays the run's."""
        secrets = {"TOKEN": {"env": "HOST_TOKEN"}}
        fields = {"secrets": secrets, "restart": {"max_attempts": 2}, "mounts": gate.mounts}
        job = str(make_job(command=["/bin/sh", "-c", f"{gate.waits}; exit 4"], **fields))
        assert trainlaunch("up", "-d", job, env={"HOST_TOKEN": "s3 cr3t"}).returncode == 0
        os.kill(status_of(trainlaunch, job)["keeper"]["pid"], signal.SIGKILL)
        until(lambda: status_of(trainlaunch, job)["keeper"] is None)
        attached = start("attach", job)
        told = read_until(attached, b"attach again", stderr=True)
        assert b"restart.max_attempts 2 is off: secret TOKEN has no value" in told
        gate.open()
        assert ended(attached)[0] == 4
        status = status_of(trainlaunch, job)
        assert (status["attempt"], status["exit_code"]) == (1, 4)

    def test_attach_stops_where_it_is_told_to(self, start: Start, trainlaunch: Runs, make_job: MakeJob) -> None:
        """By the stop signal, with the grace period; the keeper makes no further attempt."""
        job = str(make_job(command=["/bin/sh", "-c", SAVES], restart={"max_attempts": 3}))
        assert trainlaunch("up", "-d", job).returncode == 0
        attached = start("attach", job, "--stop-on-interrupt")
        read_until(attached, b"ready\n")
        attached.send_signal(signal.SIGINT)
        assert ended(attached)[:2] == (5, "saved\n")
        assert status_of(trainlaunch, job)["attempt"] == 1

    def test_two_never_keep_one_run(self, start: Start, trainlaunch: Runs, make_job: MakeJob, gate: Gate) -> None:
        """`up` keeps what it follows: who attaches is told, and each attempt is made once."""
        script = f"echo try; {gate.waits}; exit 4"
        job = str(make_job(command=["/bin/sh", "-c", script], mounts=gate.mounts, restart={"max_attempts": 3}))
        followed = start("up", job)
        read_until(followed, b"try\n")
        attached = [start("attach", job) for _ in range(2)]
        told = [read_until(each, b" of ", stderr=True).decode() for each in attached]
        seen = [read_until(each, b"try\n").decode() for each in attached]
        gate.open()
        results = [ended(each) for each in attached]
        assert ended(followed)[0] == 4
        assert [code for code, *_ in results] == [4, 4]
        assert all(f"process {followed.pid} of " in words for words in told), told
        tries = [(text + out).count("try\n") for text, (_, out, _) in zip(seen, results, strict=True)]
        assert all(1 < each <= 3 for each in tries), results
        rows = json.loads(trainlaunch("ps", "-o", "json").stdout)["runs"]
        name = status_of(trainlaunch, job)["job"]
        (run,) = [each for each in rows if each["job"] == name]
        assert [each["attempt"] for each in run["containers"]] == [3, 2, 1]

    @pytest.mark.parametrize(
        "script",
        [
            "kill -KILL $$",
            pytest.param("exit 7", marks=pytest.mark.long),
            pytest.param("exit 75", marks=pytest.mark.long),
            pytest.param(
                "echo 'ERROR: Unexpected bus error encountered in worker.' >&2; exit 1", marks=pytest.mark.long
            ),
        ],
        ids=["killed", "bare", "75", "bus error"],
    )
    def test_every_verb_gives_the_same_causes(self, trainlaunch: Runs, make_job: MakeJob, script: str) -> None:
        """Also where the exit code says more than the log."""
        job = str(make_job(command=["/bin/sh", "-c", f"sleep 0.5; {script}"]))
        assert_each_verb_gives_the_same_causes(trainlaunch, job)
