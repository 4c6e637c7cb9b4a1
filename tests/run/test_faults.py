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
MIB = 1 << 20
GROWTH_MIB = 12  # of a command that passes on more
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
ShortJobs = Callable[[int], list[Path]]
LONGEST_SECONDS = 6.0  # of an `up` of such a job, its start included


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
def short_jobs(tmp_path: Path, base_image: str) -> Iterator[ShortJobs]:
    """Return what writes job files with names of their own, each of a job that takes a second and ends with 4."""
    command = ["/bin/sh", "-c", "echo begun; sleep 1; echo done; exit 4"]
    names: list[str] = []

    def write(count: int) -> list[Path]:
        names.extend(f"t-{uuid.uuid4().hex[:10]}" for _ in range(count))
        fields = {**SMALL, "image": base_image, "command": command}
        return [write_job(tmp_path / each, **fields, name=each) for each in names]

    yield write
    for each in names:
        docker("rm", "--force", "--volumes", *containers_of(each))


@pytest.mark.parametrize("unseen", [0, pytest.param(30, marks=pytest.mark.long)])
def test_a_launcher_killed_at_any_moment_leaves_what_ps_says_and_down_removes(
    start: Start, trainlaunch: Runs, short_jobs: ShortJobs, unseen: int
) -> None:
    """From before the container is made to after its end: the run goes on to its own code, or never came to be.

    At each moment that can be seen, and at any others.
    """
    jobs = short_jobs(len(SEEN) + unseen)
    moments = random.Random(SEED)  # noqa: S311 - the same moments each time
    others = [after(moments.uniform(0, LONGEST_SECONDS)) for _ in range(unseen)]
    for job, moment in zip(jobs, (*SEEN, *others), strict=True):
        process = start("up", str(job))
        moment(process, job)
        process.kill()
        process.wait()
    waited = {job: trainlaunch("wait", str(job)).returncode for job in jobs}
    listed = {each["job"]: each for each in json.loads(trainlaunch("ps", "-o", "json").stdout)["runs"]}
    outcomes = {outcome_of(job, listed.get(job.parent.name), waited[job]) for job in jobs}
    assert {"none", "failed"} <= outcomes <= {"none", "pending", "failed"}
    for job in jobs:
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
    assert listed["state"] == {"created": "pending", "exited": "failed"}[state["Status"]]
    if listed["state"] == "pending":  # killed between the two: the engine has it, and nothing of it ran
        assert (waited, listed["exit_code"]) == (125, None)
    else:
        assert waited == listed["exit_code"] == state["ExitCode"] == 4
        assert docker("logs", container).splitlines() == ["begun", "done"]
    return str(listed["state"])


@pytest.mark.parametrize("mib", [24, pytest.param(1024, marks=pytest.mark.long)])
def test_a_log_of_any_size_goes_through_in_little_memory(start: Start, make_job: MakeJob, mib: int) -> None:
    """Each byte arrives, and `up` keeps none of them."""
    assert_whole_and_small(start("up", str(make_job(command=["python3", "-c", PRINTS.format(mib=mib)]))), mib)


@pytest.mark.parametrize("mib", [24, pytest.param(128, marks=pytest.mark.long)])
def test_a_followed_log_goes_through_in_little_memory(start: Start, make_job: MakeJob, mib: int) -> None:
    """So it is with `logs -f`, which reads what the engine kept."""
    job = str(make_job(command=["python3", "-c", PRINTS.format(mib=mib)]))
    assert start("up", "--detach", job).wait(timeout=60) == 0
    assert_whole_and_small(start("logs", "-f", job), mib)


def assert_whole_and_small(process: subprocess.Popen[bytes], mib: int) -> None:
    """Read a job's output; its digest is the last line of its stderr."""
    digest, size, growth, err = drained(process)
    assert process.returncode == 0, err
    assert f"sha256 {digest}\n" in err
    assert size > mib * MIB
    assert growth < GROWTH_MIB * MIB, f"{growth >> 20} MiB more for {size >> 20} MiB of log"


def drained(process: subprocess.Popen[bytes]) -> tuple[str, int, int, str]:
    """Read a process to its end; return its stdout's digest and length, its memory's growth and its stderr.

    The growth is that of what it had resident at most, from its first output on.
    """
    assert process.stdout is not None
    assert process.stderr is not None
    errors: list[bytes] = []
    reader = threading.Thread(target=lambda stream: errors.append(stream.read()), args=(process.stderr,))
    reader.start()
    digest, size, peaks = hashlib.sha256(), 0, []
    status = Path(f"/proc/{process.pid}/status")
    while data := os.read(process.stdout.fileno(), MIB):
        digest.update(data)
        size += len(data)
        peaks.append(high_water(status))
    reader.join()
    process.wait(timeout=60)
    assert 0 < peaks[0] <= max(peaks)
    return digest.hexdigest(), size, max(peaks) - peaks[0], errors[0].decode()


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
    """Return the mount point of a file system of 64 KiB."""
    if os.getuid():
        pytest.skip("only root can mount")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=True)
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
