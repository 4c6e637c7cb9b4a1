"""Faults on real containers: the launcher killed at any moment, huge logs, slow readers, full disks."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Runs
from tests.jobs import write_job
from tests.run.conftest import SMALL, containers_of, docker, inspected
from tests.run.test_up import Start, ended, read_until

pytestmark = pytest.mark.docker
MakeJob = Callable[..., Path]
SEED = 20_240_607
RANDOM_MOMENTS = 6
MIB = 1 << 20
RSS_LIMIT_MIB = 96  # of a command that passes on more
PRINTS = (
    "import hashlib, sys\n"
    "digest, out = hashlib.sha256(), sys.stdout.buffer\n"
    "for number in range({mib}):\n"
    "    block = (b'%08d ' % number * 114 + b'\\n') * 1022\n"
    "    digest.update(block); out.write(block)\n"
    "out.flush()\n"
    "sys.stderr.write('sha256 ' + digest.hexdigest() + '\\n')\n"
)


Moment = Callable[["subprocess.Popen[bytes]", Path], None]


def at_once(process: subprocess.Popen[bytes], job: Path) -> None:
    """Before an interpreter can have asked for a container."""


def when_made(process: subprocess.Popen[bytes], job: Path) -> None:
    """As soon as the engine lists the container, which may not have started yet."""
    while not containers_of(job.parent.name):
        assert process.poll() is None, ended(process)


def when_it_runs(process: subprocess.Popen[bytes], job: Path) -> None:
    """When the job has said something."""
    read_until(process, b"begun\n")


def when_it_is_over(process: subprocess.Popen[bytes], job: Path) -> None:
    """When the job has said its last word: `up` is about to end, or has ended."""
    read_until(process, b"done\n")


def after(seconds: float) -> Moment:
    """At any other moment."""
    return lambda process, job: time.sleep(seconds)


SEEN = (at_once, when_made, when_it_runs, when_it_is_over)


@pytest.fixture
def short_jobs(tmp_path: Path, base_image: str) -> Iterator[list[Path]]:
    """Return job files with names of their own, each of a job that takes two seconds and ends with 4."""
    command = ["/bin/sh", "-c", "echo begun; sleep 2; echo done; exit 4"]
    names = [f"t-{uuid.uuid4().hex[:10]}" for _ in range(1 + len(SEEN) + RANDOM_MOMENTS)]
    yield [
        write_job(tmp_path / each, **{**SMALL, "name": each, "image": base_image, "command": command}) for each in names
    ]
    for each in names:
        docker("rm", "--force", "--volumes", *containers_of(each))


def test_a_launcher_killed_at_any_moment_leaves_what_ps_says_and_down_removes(
    start: Start, trainlaunch: Runs, short_jobs: list[Path]
) -> None:
    """From before the container is made to after its end: the run goes on to its own code, or never came to be."""
    begun = time.monotonic()
    assert ended(start("up", str(short_jobs[0])))[0] == 4
    whole = time.monotonic() - begun
    moments = random.Random(SEED)  # noqa: S311 - the same moments each time
    unseen = [after(moments.uniform(0, 1.1 * whole)) for _ in range(RANDOM_MOMENTS)]
    for job, moment in zip(short_jobs[1:], (*SEEN, *unseen), strict=True):
        process = start("up", str(job))
        moment(process, job)
        process.kill()
        process.wait()
    waited = {job: trainlaunch("wait", str(job)).returncode for job in short_jobs}
    listed = {each["job"]: each for each in json.loads(trainlaunch("ps", "-o", "json").stdout)["runs"]}
    outcomes = {outcome_of(job, listed.get(job.parent.name), waited[job]) for job in short_jobs}
    assert {"none", "exited"} <= outcomes <= {"none", "created", "exited"}
    for job in short_jobs:
        assert trainlaunch("down", str(job)).returncode in {0, 3}
        assert containers_of(job.parent.name) == []


def outcome_of(job: Path, listed: dict[str, Any] | None, waited: int) -> str:
    """Return the state of one run, as `ps` lists it and the engine confirms it; `waited` is the code of `wait`."""
    containers = containers_of(job.parent.name)
    if listed is None:
        assert (containers, waited) == ([], 125)
        return "none"
    (container,) = containers
    state = inspected(container)["State"]
    assert state["Status"] == listed["state"]
    if listed["state"] == "created":  # killed between the two: the engine has it, and nothing of it ran
        assert (waited, listed["exit_code"]) == (125, None)
    else:
        assert waited == listed["exit_code"] == state["ExitCode"] == 4
        assert docker("logs", container).splitlines() == ["begun", "done"]
    return str(listed["state"])


def test_a_gigabyte_of_log_goes_through_in_little_memory(start: Start, make_job: MakeJob) -> None:
    """Each byte arrives, and `up` keeps none of them."""
    process = start("up", str(make_job(command=["python3", "-c", PRINTS.format(mib=1024)])))
    assert_whole_and_small(process, 1024)


def test_a_followed_log_goes_through_in_little_memory(start: Start, make_job: MakeJob) -> None:
    """So it is with `logs -f`, which reads what the engine kept."""
    job = str(make_job(command=["python3", "-c", PRINTS.format(mib=128)]))
    assert start("up", "--detach", job).wait(timeout=60) == 0
    assert_whole_and_small(start("logs", "-f", job), 128)


def assert_whole_and_small(process: subprocess.Popen[bytes], mib: int) -> None:
    """Read a job's output; its digest is the last line of its stderr."""
    digest, size, peak, err = drained(process)
    assert process.returncode == 0, err
    assert f"sha256 {digest}\n" in err
    assert size > mib * MIB
    assert 0 < peak < RSS_LIMIT_MIB * MIB, f"{peak >> 20} MiB for {size >> 20} MiB of log"


def drained(process: subprocess.Popen[bytes]) -> tuple[str, int, int, str]:
    """Read a process to its end; return its stdout's digest and length, its most resident memory and its stderr."""
    assert process.stdout is not None
    assert process.stderr is not None
    errors: list[bytes] = []
    reader = threading.Thread(target=lambda stream: errors.append(stream.read()), args=(process.stderr,))
    reader.start()
    digest, size, peak = hashlib.sha256(), 0, 0
    status = Path(f"/proc/{process.pid}/status")
    while data := os.read(process.stdout.fileno(), MIB):
        digest.update(data)
        size += len(data)
        peak = max(peak, high_water(status))
    reader.join()
    process.wait(timeout=60)
    return digest.hexdigest(), size, peak, errors[0].decode()


def high_water(status: Path) -> int:
    """Return the most memory that a process ever had resident, in bytes; 0 when it has ended."""
    try:
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
    except OSError:
        return 0
    return int(fields["VmHWM"].split()[0]) * 1024 if "VmHWM" in fields else 0


def test_a_slow_reader_loses_nothing(start: Start, make_job: MakeJob) -> None:
    """Whoever reads `up` may pause: the job waits for it, or the engine keeps it, and every byte comes."""
    process = start("up", str(make_job(command=["python3", "-c", PRINTS.format(mib=16)])))
    assert process.stdout is not None
    digest, size = hashlib.sha256(), 0
    while data := os.read(process.stdout.fileno(), 65536):
        digest.update(data)
        size += len(data)
        time.sleep(0.5 if size < 4 * 65536 else 0.002)
    code, _, err = ended(process)
    assert (code, size > 16 * MIB) == (0, True)
    assert f"sha256 {digest.hexdigest()}\n" in err


def test_a_reader_that_stopped_does_not_keep_ctrl_c_from_stopping_the_job(
    start: Start, make_job: MakeJob, job_name: str
) -> None:
    """stdout is full and nobody reads: the signal still stops the job, and `up` ends."""
    process = start("up", str(make_job(command=["python3", "-c", PRINTS.format(mib=64)], stop_grace_period="2s")))
    read_until(process, b"0")
    time.sleep(2)  # the pipe and every buffer behind it are full by now
    process.send_signal(2)
    code, _, err = ended(process)
    assert code in {0, 130, 137, 143}, err
    (container,) = containers_of(job_name)
    assert inspected(container)["State"]["Running"] is False


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """Return the mount point of a file system of 16 KiB."""
    if os.getuid():
        pytest.skip("only root can mount")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_while_rendering_leaves_the_old_file_whole(
    trainlaunch: Runs, tiny_disk: Path, tmp_path: Path
) -> None:
    """TL-coded, no half-written file, the earlier rendering untouched, and nothing temporary left."""
    job = str(write_job(tmp_path))
    written = trainlaunch("render", job, "--write-to", str(tiny_disk))
    assert written.returncode == 0, written.stderr
    (target,) = tiny_disk.iterdir()
    before = target.read_bytes()
    filler = tiny_disk / "filler"
    with pytest.raises(OSError, match="No space left"):
        filler.write_bytes(bytes(1 << 16))
    done = trainlaunch("render", job, "--set", "shm_size=2Gi", "--write-to", str(tiny_disk), "--overwrite")
    assert done.returncode not in {0, 70}
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert target.read_bytes() == before
    assert {each.name for each in tiny_disk.iterdir()} == {target.name, "filler"}
