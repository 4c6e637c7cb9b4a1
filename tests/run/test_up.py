"""`trainlaunch up` as a user runs it: a process, a real engine, real containers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.run.base.console import SAME_PRESS_SECONDS

from tests.conftest import Runs
from tests.run.conftest import containers_of, docker, inspected
from tests.run.gate import Gate

pytestmark = pytest.mark.docker
Start = Callable[..., "subprocess.Popen[bytes]"]
MakeJob = Callable[..., Path]
# A handler that "checkpoints" for a second, as a training script's does.
CHECKPOINTS = (
    "import os, signal, sys, time\n"
    "def save(*_):\n"
    "    time.sleep(1); os.write(1, b'saved\\n'); sys.exit(5)\n"
    "signal.signal(signal.SIGTERM, save)\n"
    "os.write(1, b'ready\\n')\n"  # a print that a signal interrupts refuses another one
    "while True: time.sleep(0.1)\n"
)
DEAF = (
    "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('ready', flush=True)\nwhile True: time.sleep(0.1)\n"
)


def read_until(process: subprocess.Popen[bytes], word: bytes, *, stderr: bool = False) -> bytes:
    """Read stdout or stderr up to a word; a silent process is killed after 60 s, and the test fails by what it said."""
    stream = process.stderr if stderr else process.stdout
    assert stream is not None
    guard = threading.Timer(60, process.kill)
    guard.start()
    seen = b""
    while word not in seen:
        byte = os.read(stream.fileno(), 4096)
        if not byte:
            pytest.fail(f"ended before {word!r}: {seen!r} {process.communicate()[1]!r}")
        seen += byte
    guard.cancel()
    return seen


def ended(process: subprocess.Popen[bytes], timeout: float = 90) -> tuple[int, str, str]:
    """Wait for the end; return exit code, the rest of stdout, stderr."""
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out.decode(), err.decode()


def test_the_jobs_streams_and_code_are_ups(start: Start, make_job: MakeJob) -> None:
    """Bytes untouched, stdout is the job's only, the dead container is kept."""
    command = ["/bin/sh", "-c", r"printf 'first\n\377'; echo problem >&2; printf end; exit 3"]
    process = start("up", str(make_job(command=command)))
    out, err = process.communicate(timeout=90)
    assert (process.returncode, out) == (3, b"first\n\377end")
    assert b"problem\n" in err
    assert b"the job ended with exit code 3" in err
    assert b"no known cause\n   = exit code: 3\n   = OOMKilled: false\n   = memory limit: 256 MiB\n" in err


def test_shm_inside_is_the_plans(trainlaunch: Runs, make_job: MakeJob) -> None:
    """Seen by a program in the container, to the byte."""
    command = ["python3", "-c", "import os; s = os.statvfs('/dev/shm'); print(s.f_blocks * s.f_frsize)"]
    job = str(make_job(command=command, shm_size="96Mi"))
    planned = json.loads(trainlaunch("plan", job, "-o", "json").stdout)
    assert trainlaunch("up", job).stdout == f"{planned['shm']['size']}\n"


def test_wrong_files_stop_with_78_and_are_not_retried(trainlaunch: Runs, make_job: MakeJob) -> None:
    """The preflight stops it before the first line, once: another attempt would find the same files."""
    wrong, loader = {"TMPDIR": "/no/such/folder"}, {"num_workers": 1, "batch_size": 1}  # workers have sockets there
    fields = {"env": wrong, "data_loader": loader, "restart": {"max_attempts": 3}, "command": ["echo", "trained"]}
    done = trainlaunch("up", str(make_job(**fields)))
    assert done.returncode == 78
    assert "trained" not in done.stdout
    assert "cause[TL601]" in done.stderr
    assert "attempt 2" not in done.stderr


def test_attempts_are_new_containers(trainlaunch: Runs, make_job: MakeJob, job_name: str) -> None:
    """Three attempts, each kept with its own log, told by a line, and the last one's code."""
    done = trainlaunch("up", str(make_job(command=["/bin/sh", "-c", "echo try; exit 4"], restart={"max_attempts": 3})))
    assert (done.returncode, done.stdout) == (4, "try\n" * 3)
    assert "attempt 1 of 3 ended with exit code 4; starting attempt 2" in done.stderr
    names = sorted(inspected(each)["Name"] for each in containers_of(job_name))
    assert len(names) == 3
    assert names[0] == f"/{job_name}"
    assert names[2] == f"{names[1]}-2"


def test_a_second_run_keeps_the_first(trainlaunch: Runs, make_job: MakeJob, job_name: str) -> None:
    """An ended run gives its name up and stays: `down` removes the newest, --all the others too."""
    job = str(make_job(command=["/bin/sh", "-c", "exit 0"]))
    assert [trainlaunch("up", job).returncode for _ in range(2)] == [0, 0]
    assert len(containers_of(job_name)) == 2
    assert trainlaunch("down", job).returncode == 0
    assert len(containers_of(job_name)) == 1
    assert trainlaunch("down", job, "--all").returncode == 0
    assert containers_of(job_name) == []


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_a_signal_lets_the_job_checkpoint(start: Start, make_job: MakeJob, number: signal.Signals) -> None:
    """The job's handler takes its time, its last line arrives, and its own code is up's."""
    process = start("up", str(make_job(command=["python3", "-c", CHECKPOINTS])))
    read_until(process, b"ready\n")
    process.send_signal(number)
    code, out, err = ended(process)
    assert (code, out) == (5, "saved\n")
    assert "stopping the job; it has 20s to end" in err
    assert "cause[TL611]" in err


def test_a_second_ctrl_c_kills(start: Start, make_job: MakeJob) -> None:
    """A job that ignores SIGTERM doesn't hold the terminal for its whole grace period."""
    process = start("up", str(make_job(command=["python3", "-c", DEAF], stop_grace_period="10m")))
    read_until(process, b"ready\n")
    process.send_signal(signal.SIGINT)
    read_until(process, b"stopping the job", stderr=True)
    time.sleep(SAME_PRESS_SECONDS)
    process.send_signal(signal.SIGINT)
    code, _, err = ended(process)
    assert code == 137
    assert "killing it" in err
    assert "OOM" not in err


def test_the_deadline_is_enforced(trainlaunch: Runs, make_job: MakeJob) -> None:
    """The job is stopped as by Ctrl-C, it is said, and its own code counts."""
    script = "trap 'echo saved; exit 5' TERM; echo ready; while :; do sleep 0.1; done"
    job = str(make_job(command=["/bin/sh", "-c", script], active_deadline="3s"))
    done = trainlaunch("up", job)
    assert (done.returncode, done.stdout) == (5, "ready\nsaved\n")
    assert "active_deadline 3s is over: stopping the job" in done.stderr


def test_of_two_ups_exactly_one_wins(start: Start, make_job: MakeJob, job_name: str, gate: Gate) -> None:
    """The other has TL506 and 125, and the winner's run is untouched; an ended run before them doesn't matter."""
    job = str(make_job(command=["/bin/sh", "-c", gate.waits], mounts=gate.mounts))
    docker("create", "--name", job_name, f"--label=dev.trainlaunch.job={job_name}", "trainlaunch-test:base", "true")
    docker("start", job_name)
    docker("wait", job_name)
    assert_one_wins([start("up", job) for _ in range(3)], gate)


def assert_one_wins(racers: list[subprocess.Popen[bytes]], gate: Gate) -> None:
    """Assert that all but one are refused while the job of the one waits at its gate, which is opened then."""
    until = time.monotonic() + 90
    while sum(each.poll() is None for each in racers) > 1 and time.monotonic() < until:
        time.sleep(0.05)
    gate.open()
    results = [ended(each) for each in racers]
    assert sorted(each[0] for each in results) == [0, 125, 125], results
    assert sum("error[TL506]" in each[2] for each in results) == 2


def test_a_running_run_is_named_with_what_to_do(trainlaunch: Runs, make_job: MakeJob, job_name: str) -> None:
    """Not replaced, not duplicated."""
    job = str(make_job(command=["/bin/sh", "-c", "sleep 60"]))
    assert trainlaunch("up", "--detach", job).stdout == f"{job_name}\n"
    done = trainlaunch("up", job)
    assert done.returncode == 125
    assert f"trainlaunch logs -f {job_name}" in done.stderr
    assert f"trainlaunch down {job_name}" in done.stderr


def test_a_foreign_container_of_that_name_is_left_alone(
    trainlaunch: Runs, make_job: MakeJob, job_name: str, base_image: str
) -> None:
    """Somebody else's container is neither renamed nor removed, even if it has ended."""
    foreign = docker("create", "--name", job_name, base_image, "true")
    try:
        done = trainlaunch("up", str(make_job()))
        assert done.returncode == 125
        assert f"error[TL506]: the container name {job_name} is taken by something" in done.stderr
        assert inspected(foreign)["Name"] == f"/{job_name}"
    finally:
        docker("rm", foreign)


def test_detached_prints_its_name_and_leaves_a_keeper(trainlaunch: Runs, make_job: MakeJob, job_name: str) -> None:
    """The name on stdout, the next commands on stderr; attempts are made as by an `up` that follows."""
    job = str(make_job(command=["/bin/sh", "-c", "exit 6"], restart={"max_attempts": 2}, active_deadline="1h"))
    done = trainlaunch("up", "-d", job)
    assert (done.returncode, done.stdout) == (0, f"{job_name}\n")
    assert f"trainlaunch logs -f {job_name}" in done.stderr
    assert "no process keeps it" not in done.stderr
    assert trainlaunch("wait", job).returncode == 6
    assert len(containers_of(job_name)) == 2


def test_a_removed_container_ends_up_and_its_attempts(start: Start, make_job: MakeJob, trainlaunch: Runs) -> None:
    """`down` from another terminal: no new attempt, the job's own code."""
    job = str(make_job(command=["python3", "-c", CHECKPOINTS], restart={"max_attempts": 5}))
    process = start("up", job)
    read_until(process, b"ready\n")
    assert trainlaunch("down", job).returncode == 0
    code, _, err = ended(process)
    assert code == 5, err
    assert "starting attempt" not in err


def test_out_of_memory_is_named(trainlaunch: Runs, make_job: MakeJob) -> None:
    """137 with OOMKilled, the share of /dev/shm told, and no word of a bus error."""
    eat = "x = []\nwhile True: x.append(bytearray(8 << 20))"
    resources = {"cpus": 1, "memory": "96Mi"}
    done = trainlaunch("up", str(make_job(command=["python3", "-c", eat], resources=resources)))
    assert done.returncode == 137
    assert "cause[TL610]: the kernel killed the job at its memory limit" in done.stderr
    assert "bus error" not in done.stderr.lower()


def test_a_bus_error_is_named(trainlaunch: Runs, make_job: MakeJob) -> None:
    """A sparse file in a full /dev/shm: 135, no traceback, and still a cause."""
    fill = (
        "import mmap\n"
        "f = open('/dev/shm/x', 'w+b'); f.truncate(128 << 20)\n"
        "mmap.mmap(f.fileno(), 0)[:] = bytes(128 << 20)\n"
    )
    done = trainlaunch("up", str(make_job(command=["python3", "-c", fill])))
    assert done.returncode == 135
    assert "cause[TL606]" in done.stderr
    assert "shm_size to 1Gi" in done.stderr


@pytest.mark.parametrize(("command", "code"), [("no-such-program", 127), ("/etc/passwd", 126)])
def test_a_command_that_can_not_start_is_told(trainlaunch: Runs, make_job: MakeJob, command: str, code: int) -> None:
    """126 and 127 as everywhere, with the cause."""
    done = trainlaunch("up", str(make_job(command=[command], restart={"max_attempts": 3})))
    assert done.returncode == code
    assert "cause[TL614]" in done.stderr
    assert "attempt 2" not in done.stderr


def test_host_and_job_problems_stop_before_anything_is_made(
    trainlaunch: Runs, make_job: MakeJob, job_name: str
) -> None:
    """Too many CPUs and a missing secret: both told, 125, no container."""
    job = str(make_job(resources={"cpus": 4096, "memory": "256Mi"}, secrets={"TOKEN": {"env": "UNSET_TOKEN"}}))
    done = trainlaunch("up", job)
    assert done.returncode == 125
    assert "error[TL504]: resources.cpus 4096 is more than" in done.stderr
    assert "error[TL507]" in done.stderr
    assert containers_of(job_name) == []


def test_a_secret_arrives_and_is_shown_nowhere(start: Start, make_job: MakeJob, gate: Gate) -> None:
    """The job sees it; our stderr, labels and process list don't."""
    command = ["/bin/sh", "-c", f"case $TOKEN in s3*cr3t) echo arrived ;; esac; {gate.waits}"]
    job = str(make_job(command=command, secrets={"TOKEN": {"env": "HOST_TOKEN"}}, mounts=gate.mounts))
    process = start("up", job, HOST_TOKEN="s3 cr3t")
    read_until(process, b"arrived\n")
    found: dict[str, Any] = inspected(Path(job).read_text().partition("name: ")[2].split()[0])
    listed = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=False).stdout
    gate.open()
    code, out, err = ended(process)
    assert code == 0
    assert "s3 cr3t" not in out + err + listed + json.dumps(found["Config"]["Labels"])


def test_a_closed_stdout_does_not_end_the_job(start: Start, make_job: MakeJob, trainlaunch: Runs, gate: Gate) -> None:
    """`up | head -1` leaves the job to its end, and its code is still up's."""
    script = f"echo 0; {gate.waits}; for each in $(seq 1 19); do echo $each; sleep 0.01; done; exit 4"
    job = str(make_job(command=["/bin/sh", "-c", script], mounts=gate.mounts))
    process = start("up", job)
    read_until(process, b"0\n")
    assert process.stdout is not None
    process.stdout.close()
    gate.open()
    assert process.wait(timeout=60) == 4
    assert trainlaunch("logs", job).stdout.splitlines()[-1] == "19"
