"""Whoever is killed, a local run goes on or is gone, `ps` tells which, and `down` leaves nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from trainlaunch.run.base.backend import Peak
from trainlaunch.run.base.private_files import replace_record
from trainlaunch.run.local.backend import LocalBackend
from trainlaunch.run.local.follow import frames_of
from trainlaunch.run.local.processes import descendants, identity_of, marked
from trainlaunch.run.local.record import LOST, NEVER_STARTED, RESTARTED
from trainlaunch.run.local.state import RunFolder

from tests.conftest import ROOT, Runs
from tests.local.conftest import MakeJob, Start
from tests.run.contract import WAITS, MakePlan
from tests.run.test_up import ended, read_until
from tests.users import ROOT_ONLY

OnlyRun = Callable[[], RunFolder]
MOMENTS = (0.1, 0.25, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.5)  # seconds: before, while and after `up` starts the job


def wait_until(true: Callable[[], bool], *, step: float = 0.1) -> None:
    """Wait for what comes soon, with a look every `step` seconds; fails after 60 s."""
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(step)


def test_a_killed_launcher_leaves_a_run_that_goes_on(
    start: Start, make_job: MakeJob, trainlaunch: Runs, run_folder: OnlyRun, job_name: str
) -> None:
    """SIGKILL of `up`: the run is listed as running, its log and exit code are whole."""
    script = "echo ready; while [ ! -e go ]; do sleep 0.1; done; seq 1000; exit 9"
    job = make_job(command=["/bin/sh", "-c", script])
    process = start("up", str(job))
    read_until(process, b"ready\n")
    process.kill()
    process.wait(timeout=30)
    assert json.loads(trainlaunch("ps", "--target", "local", "-o", "json").stdout)["runs"][0]["state"] == "running"
    (job.parent / "go").touch()
    assert trainlaunch("wait", job_name).returncode == 9
    assert trainlaunch("logs", job_name).stdout.splitlines()[1:] == [str(number) for number in range(1, 1001)]
    assert marked(run_folder().path) == []


def test_a_launcher_killed_as_its_run_appears_leaves_a_true_state(
    start: Start, make_job: MakeJob, trainlaunch: Runs, job_name: str, state: Path
) -> None:
    """When nothing of the job has begun: a run that `ps` shows as it is; `down` ends it and leaves nothing."""
    process = start("up", str(make_job(command=["sleep", "60"])))
    wait_until(lambda: any(state.glob("*/*/run.json")), step=0.001)
    assert _left_by_killed(process, trainlaunch, job_name, state) == 1


@pytest.mark.long
def test_a_launcher_killed_at_any_moment_leaves_a_true_state(
    start: Start, make_job: MakeJob, trainlaunch: Runs, job_name: str, state: Path
) -> None:
    """At each moment of its start: nothing, or a run as above."""
    for moment in MOMENTS:
        process = start("up", str(make_job(command=["sleep", "60"])))
        time.sleep(moment)
        assert _left_by_killed(process, trainlaunch, job_name, state) in {0, 1}


def _left_by_killed(process: subprocess.Popen[bytes], trainlaunch: Runs, job: str, state: Path) -> int:
    """Kill `up`, and return how many runs it left, each of which was listed as it was and is gone after `down`."""
    process.kill()
    process.wait(timeout=30)
    folders = [RunFolder(each) for each in state.glob("*/*")]
    wait_until(lambda: all(_settled(each) for each in folders))
    for run in LocalBackend(state).runs():
        alive = bool(marked(state / run.id))
        assert (run.status == "running") == alive, run
    done = trainlaunch("down", job, "--target", "local")
    assert done.returncode == (0 if folders else 3), done.stderr
    assert [each for each in folders if each.path.exists() or marked(each.path)] == []
    return len(folders)


def _settled(folder: RunFolder) -> bool:
    """Whether the keeper that a killed launcher may have started has said so, or never will."""
    return folder.started() is not None or not _starting(folder)


def _starting(folder: RunFolder) -> bool:
    listed = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=False).stdout
    return str(folder.path) in listed


def test_a_killed_keeper_takes_the_job_with_it_and_ps_says_so(
    start: Start, make_job: MakeJob, trainlaunch: Runs, run_folder: OnlyRun, nothing_is_left: Callable[[], None]
) -> None:
    """No exit code is invented; `up` says that it is lost and ends with 125, though a grandchild lived on."""
    process = start("up", str(make_job(command=["/bin/sh", "-c", f"sleep 300 & {WAITS}"])))
    read_until(process, b"ready\n")
    started = run_folder().started()
    assert started is not None
    os.kill(started[0].pid, signal.SIGKILL)
    code, _, err = ended(process)
    assert code == 125
    assert LOST in err
    assert marked(run_folder().path) == []
    (run,) = json.loads(trainlaunch("ps", "--target", "local", "-o", "json").stdout)["runs"]
    assert (run["state"], run["exit_code"]) == ("failed", None)
    nothing_is_left()


def test_processes_that_a_job_leaves_end_with_it(trainlaunch: Runs, make_job: MakeJob, run_folder: OnlyRun) -> None:
    """As with a container, even one that made itself a daemon; `up` does not wait for it."""
    daemon = (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(600)\n    os._exit(0)"
    )
    command = ["/bin/sh", "-c", f'env -i "$0" -c "{daemon}"; sleep 600 & echo done', sys.executable]
    done = trainlaunch("up", str(make_job(command=command)))
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert marked(run_folder().path) == []


def test_a_reused_pid_is_not_the_run(make_plan_of: MakePlan, state: Path) -> None:
    """The same pid with another start time is somebody else: not running, not killed."""
    backend = LocalBackend(state)
    plan = make_plan_of(command=["sleep", "60"])
    folder = RunFolder(state / backend.create(plan, "aaaaaaaa", 1))
    with subprocess.Popen(["sleep", "60"]) as stranger:
        other = replace(identity_of(stranger.pid), start=1)
        folder.start(other, other, 0.0)
        (run,) = backend.runs()
        assert (run.status, run.error) == ("exited", LOST)
        backend.stop(run.id)
        backend.kill(run.id)
        assert stranger.poll() is None
        folder.start(replace(other, boot="another"), other, 0.0)
        assert backend.runs()[0].error == RESTARTED
        stranger.kill()


def test_a_run_whose_creator_died_before_its_start_holds_no_name(make_plan_of: MakePlan, state: Path) -> None:
    """It is shown as never started, and the next run takes the name."""
    backend = LocalBackend(state)
    plan = make_plan_of(command=["true"])
    folder = RunFolder(state / backend.create(plan, "aaaaaaaa", 1))
    dead = replace(identity_of(os.getpid()), start=1)
    folder.describe({**(folder.description() or {}), "creator": asdict(dead)})
    assert backend.runs()[0].error == NEVER_STARTED
    backend.create(plan, "bbbbbbbb", 1)
    assert [each.name for each in backend.runs()] == [plan.name, f"{plan.name}-aaaaaaaa"]


def test_runs_of_another_host_in_a_shared_home_are_not_ours(make_plan_of: MakePlan, state: Path) -> None:
    """Their processes can't be asked after here, so nothing is said about them and their name is free."""
    backend = LocalBackend(state)
    plan = make_plan_of(command=["true"])
    folder = RunFolder(state / backend.create(plan, "aaaaaaaa", 1))
    folder.describe({**(folder.description() or {}), "host": "elsewhere"})
    assert backend.runs() == ()
    backend.create(plan, "bbbbbbbb", 1)


def test_a_half_made_folder_is_no_run(state: Path, job_name: str, trainlaunch: Runs) -> None:
    """A launcher that was killed between two files of it does not break `ps`."""
    (state / job_name / "aaaaaaaa-1").mkdir(parents=True)
    done = trainlaunch("ps", "--target", "local")
    assert (done.returncode, done.stdout) == (0, "")


def test_a_full_disk_costs_output_and_neither_the_job_nor_its_code(tmp_path: Path) -> None:
    """What found no room is counted and told in the log once there is room; frames stay whole."""
    folder = RunFolder(tmp_path / "job" / "aaaaaaaa-1")
    folder.make({})
    code = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from trainlaunch.run.local.keeper import LogWriter\n"
        "from trainlaunch.run.local.follow import Overflow\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "log = LogWriter(Path(sys.argv[1]), Overflow())\n"
        "log.write(1, b'first\\n')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50, resource.RLIM_INFINITY))\n"
        "log.write(1, b'x' * 200)\n"
        "log.write(2, b'y' * 100)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "log.write(1, b'last\\n')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "launcher")}
    subprocess.run([sys.executable, "-c", code, str(folder.log)], env=environment, check=True, timeout=60)
    frames = [(each.stderr, each.data) for each in frames_of(folder, follow=False)]
    lost = b"trainlaunch: 300 bytes of the log were lost: its disk was full\n"
    assert frames == [(False, b"first\n"), (True, lost), (False, b"last\n")]


@ROOT_ONLY
@pytest.mark.parametrize("verb", ["up", "logs"])
def test_a_full_disk_is_said_at_once_and_hides_nothing_from_who_follows(
    start: Start, make_job: MakeJob, trainlaunch: Runs, tmp_path: Path, state: Path, job_name: str, verb: str
) -> None:
    """The terminal has every byte and the code; the log says what it lacks, once there is room again."""
    disk = state.parent
    disk.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", disk], check=True)
    try:
        script = f"echo begun; while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; seq 60000; echo last words >&2; exit 6"
        job = str(make_job(command=["/bin/sh", "-c", script]))
        up = start("up", *(["-d"] if verb == "logs" else []), job)
        process = up
        if verb == "logs":
            assert ended(up)[0] == 0
            process = start("logs", "-f", job_name)
        read_until(process, b"begun\n")
        (tmp_path / "go").touch()
        code, out, err = ended(process)
        assert (code, out) == (6, "".join(f"{number}\n" for number in range(1, 60001))), err
        assert "the disk of the run's log is full: what comes now is shown and not kept" in err
        assert "last words\n" in err
        assert len(trainlaunch("logs", job_name).stdout) < 256 << 10
        assert trainlaunch("down", job_name).returncode == 0
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def test_the_end_needs_no_room_on_the_disk(tmp_path: Path) -> None:
    """Its page is written at the start, so a limit of 0 new bytes does not keep the exit code from being recorded."""
    folder = RunFolder(tmp_path / "job" / "aaaaaaaa-1")
    folder.make({})
    before = {each.name: each.stat().st_size for each in folder.path.iterdir()}
    folder.end(7, 1.5)
    assert folder.ended() == (7, 1.5)
    assert {each.name: each.stat().st_size for each in folder.path.iterdir()} == before


def test_a_reader_never_sees_half_a_record(tmp_path: Path) -> None:
    """A record is put in place whole, and a page that was never written is no record."""
    folder = RunFolder(tmp_path / "job" / "aaaaaaaa-1")
    folder.make({"name": "x"})
    assert (folder.ended(), folder.started(), folder.peak(), folder.signals()) == (None, None, Peak(0), ())
    replace_record(folder.path / "run.json", {"name": "y"})
    assert folder.description() == {"name": "y"}
    assert sorted(each.name for each in folder.path.iterdir()) == ["end", "log", "peak", "run.json"]


@pytest.mark.parametrize("size", [5_000_000, pytest.param(100_000_000, marks=pytest.mark.long)])
def test_megabytes_of_log_arrive(trainlaunch: Runs, make_job: MakeJob, size: int) -> None:
    """Nothing is lost between a job that writes as fast as it can, the log and the follower."""
    job = str(make_job(command=["/bin/sh", "-c", f"head -c {size} /dev/zero | tr '\\0' x; exit 3"]))
    done = trainlaunch("up", job)
    assert (done.returncode, len(done.stdout)) == (3, size)
    assert len(trainlaunch("logs", job).stdout) == size


def test_descendants_are_found_over_generations() -> None:
    """A shell's child and grandchild, by their parents."""
    with subprocess.Popen(
        ["/bin/sh", "-c", "/bin/sh -c 'sleep 60 & echo; wait'; true"], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert len(descendants(process.pid)) == 2
        for each in (*descendants(process.pid), process.pid):
            os.kill(each, signal.SIGKILL)


def test_modules_of_the_current_folder_do_not_reach_the_keeper(
    trainlaunch: Runs, make_job: MakeJob, tmp_path: Path
) -> None:
    """A job folder with a json.py or a trainlaunch.py of its own is a usual thing."""
    for name in ("selectors.py", "trainlaunch.py", "ctypes.py"):
        (tmp_path / name).write_text("raise SystemExit(1)\n")
    job = str(make_job(command=["echo", "trained"]))
    code = (
        "import sys; sys.path.remove(''); from trainlaunch.cli.main import main; raise SystemExit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "up", job],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "launcher")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "trained\n"), done.stderr
