"""`trainlaunch up --target local` as a user runs it: a process of this host, no engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from trainlaunch.run.base.console import SAME_PRESS_SECONDS
from trainlaunch.run.base.shm_place import way_to_enlarge
from trainlaunch.run.local.state import RunFolder

from tests.conftest import Runs
from tests.local.conftest import MakeJob, Start
from tests.run.keeper_contract import until
from tests.run.test_up import CHECKPOINTS, DEAF, ended, read_until

NO_ENGINE = {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}


def test_streams_and_code_are_ups_without_an_engine(start: Start, make_job: MakeJob) -> None:
    """Bytes untouched, stdout is the job's only, and what has no effect is said once."""
    command = ["/bin/sh", "-c", r"printf 'first\n\377'; echo problem >&2; printf end; exit 3"]
    process = start("up", str(make_job(command=command, user="1000")), **NO_ENGINE)
    out, err = process.communicate(timeout=90)
    assert (process.returncode, out) == (3, b"first\n\377end")
    assert b"problem\n" in err
    assert err.count(b"target local does not apply image, user") == 1
    assert b"CPUs (resources.cpus 1)" in err
    assert b"(resources.memory 256Mi)" in err
    assert b"(shm_size 64Mi)" in err
    assert b"the job ended with exit code 3" in err


def test_the_target_option_and_the_jobs_own_target_say_the_same(trainlaunch: Runs, make_job: MakeJob) -> None:
    """`target: local` in the file, or `--target local` over another."""
    command = ["/bin/sh", "-c", "echo $TRAINLAUNCH_BATCH_SIZE"]
    assert trainlaunch("up", str(make_job(command=command))).stdout == "1\n"
    other = str(make_job(command=command, target="docker"))
    assert trainlaunch("up", other, "--target", "local", env=NO_ENGINE).stdout == "1\n"


def test_the_preflights_variables_and_tokens_arrive(trainlaunch: Runs, make_job: MakeJob, job_name: str) -> None:
    """As in a container; the run's id is its own, though all runs share the host's name."""
    command = ["/bin/sh", "-c", 'echo "$TRAINLAUNCH_NUM_WORKERS $1 $OMP_NUM_THREADS $TRAINLAUNCH_RUN_ID"', "sh"]
    job = str(make_job(command=[*command, "--workers={num_workers}"], env={"OMP_NUM_THREADS": "3"}))
    words = trainlaunch("up", job, env={"TRAINLAUNCH_NUM_WORKERS": "99"}).stdout.split()
    assert words[:3] == ["0", "--workers=0", "3"]
    assert words[3].startswith(f"{job_name}-")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_the_job_checkpoint(start: Start, make_job: MakeJob, number: signal.Signals) -> None:
    """The job's handler takes its two seconds, its last line arrives, and its own code is up's."""
    process = start("up", str(make_job(command=["python3", "-c", CHECKPOINTS])))
    read_until(process, b"ready\n")
    process.send_signal(number)
    code, out, err = ended(process)
    assert (code, out) == (5, "saved\n")
    assert "stopping the job; it has 20s to end" in err
    assert "cause[TL611]" in err


def test_a_stop_reaches_the_training_process_and_not_its_workers(start: Start, make_job: MakeJob) -> None:
    """As an engine does: a worker that SIGTERM kills takes the checkpoint with it."""
    script = (
        "import os, signal, subprocess, sys, time\n"
        "worker = subprocess.Popen(['sleep', '60'])\n"
        "def save(*_):\n"
        "    time.sleep(0.5); print('worker', worker.poll(), flush=True); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, save); print('ready', flush=True)\n"
        "while True: time.sleep(0.1)\n"
    )
    process = start("up", str(make_job(command=["python3", "-c", script])))
    read_until(process, b"ready\n")
    process.send_signal(signal.SIGINT)
    assert ended(process)[:2] == (0, "worker None\n")


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


def test_the_deadline_is_enforced(trainlaunch: Runs, make_job: MakeJob) -> None:
    """The job is stopped as by Ctrl-C, it is said, and its own code counts."""
    done = trainlaunch("up", str(make_job(command=["python3", "-c", CHECKPOINTS], active_deadline="2s")))
    assert (done.returncode, done.stdout) == (5, "ready\nsaved\n")
    assert "active_deadline 2s is over: stopping the job" in done.stderr


def test_attempts_are_new_runs_and_78_is_not_retried(trainlaunch: Runs, make_job: MakeJob, state: Path) -> None:
    """Three attempts with their own logs; a temporary folder that isn't there ends after one."""
    job = str(make_job(command=["/bin/sh", "-c", "echo try; exit 4"], restart={"max_attempts": 3}))
    done = trainlaunch("up", job)
    assert (done.returncode, done.stdout) == (4, "try\n" * 3)
    assert len(list(state.glob("*/*"))) == 3
    job = str(make_job(env={"TMPDIR": "/nowhere"}, restart={"max_attempts": 3}, data_loader={"num_workers": 1}))
    done = trainlaunch("up", job)
    assert done.returncode == 78
    assert "attempt 2" not in done.stderr


def test_a_shm_that_can_not_hold_the_need_starts_nothing(
    trainlaunch: Runs, make_job: MakeJob, state: Path, tmp_path: Path
) -> None:
    """Both numbers, why, and what to type where this is: a host, a container, a devcontainer, a pod."""
    huge = {"num_workers": 2, "batch_size": 1, "batch_bytes": {"size": "9Ti", "tensors": 1}}
    job = str(make_job(data_loader=huge, shm_size="90Ti", resources=None))
    done = trainlaunch("up", job)
    assert done.returncode == 125
    assert "error[TL517]: /dev/shm has " in done.stderr
    assert "and the job's one-epoch peak is 54 TiB" in done.stderr
    assert not list(state.glob("*/*"))
    places = [way_to_enlarge(64, env, tmp_path) for env in ({}, {"REMOTE_CONTAINERS": "true"})]
    (tmp_path / ".dockerenv").touch()
    places += [way_to_enlarge(64, env, tmp_path) for env in ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"})]
    places.append(way_to_enlarge(64, {"SLURM_JOB_ID": "7"}, state))
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(
        "1 0 0:2 / / rw - rootfs none rw\n21 1 254:0 / / rw - ext4 /dev/vda rw\n"
    )
    assert "remount" in way_to_enlarge(64, {}, tmp_path)  # a machine made of an image
    typed = ("remount,size=64m", '"runArgs": ["--shm-size=64m"]', "--shm-size=64m` (", "sizeLimit: 64Mi", "fewer tasks")
    assert [word in place for word, place in zip(typed, places, strict=True)] == [True] * 5


def test_detached_then_status_logs_wait_and_down(
    trainlaunch: Runs, make_job: MakeJob, job_name: str, nothing_is_left: Callable[[], None]
) -> None:
    """Each verb finds the run by the job's name alone, with no engine."""
    script = "echo begun; while [ ! -e go ]; do sleep 0.1; done; exit 6"
    job = make_job(command=["/bin/sh", "-c", script])
    assert trainlaunch("up", "-d", str(job), env=NO_ENGINE).stdout == f"{job_name}\n"
    done = trainlaunch("status", job_name, "-o", "json", env=NO_ENGINE)
    status = json.loads(done.stdout)
    (process,) = status["containers"]
    assert (status["state"], process["health"], status["target"]) == ("running", "healthy", "local")
    assert process["workers"] == {"running": 0, "planned": 0}
    (row,) = [each for each in trainlaunch("ps", env=NO_ENGINE).stdout.splitlines() if each.startswith(job_name)]
    assert row.split()[3:5] + row.split()[-2:] == ["running", "-", "host", "local"]
    assert trainlaunch("up", str(job)).returncode == 125
    (job.parent / "go").touch()
    assert trainlaunch("wait", job_name, env=NO_ENGINE).returncode == 6
    assert trainlaunch("logs", "-f", job_name, env=NO_ENGINE).stdout == "begun\n"
    nothing_is_left()
    assert "TL510" in trainlaunch("status", job_name, "--target", "local").stderr


def test_an_unhealthy_host_is_told_by_status(trainlaunch: Runs, make_job: MakeJob) -> None:
    """The health command's own sentence and exit code 1, once start_period is over."""
    health = {"start_period": "0s", "timeout": "1s"}
    job = make_job(command=["sleep", "60"], healthcheck=health)
    assert trainlaunch("up", "-d", str(job)).returncode == 0
    slow = job.parent / "bin"
    slow.mkdir()
    (slow / "stat").write_text("#!/bin/sh\necho ext4 1*1 1*1\n")
    (slow / "stat").chmod(0o755)
    done = trainlaunch("status", str(job), env={"PATH": f"{slow}:{os.environ['PATH']}"})
    assert done.returncode == 1
    assert "unhealthy: /dev/shm is ext4, not tmpfs" in done.stdout


def test_of_three_ups_exactly_one_wins(start: Start, make_job: MakeJob) -> None:
    """The others have TL506 and 125, and the winner's run is untouched."""
    job = make_job(command=["/bin/sh", "-c", "while [ ! -e go ]; do sleep 0.05; done"])
    three = [start("up", str(job)) for _ in range(3)]
    until(lambda: sum(each.poll() is not None for each in three) == 2)
    (job.parent / "go").touch()
    results = [ended(each) for each in three]
    assert sorted(each[0] for each in results) == [0, 125, 125]
    assert sum("error[TL506]" in each[2] for each in results) == 2


def test_a_secret_arrives_and_is_shown_nowhere(
    start: Start, make_job: MakeJob, run_folder: Callable[[], RunFolder]
) -> None:
    """The job sees it; our output, the process list and the state don't."""
    command = ["/bin/sh", "-c", "case $TOKEN in s3*cr3t) echo arrived ;; esac; while [ ! -e go ]; do sleep 0.05; done"]
    job = make_job(command=command, secrets={"TOKEN": {"env": "HOST_TOKEN"}})
    process = start("up", str(job), HOST_TOKEN="s3 cr3t")
    read_until(process, b"arrived\n")
    kept = b"".join(each.read_bytes() for each in run_folder().path.iterdir())
    listed = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=False).stdout
    (job.parent / "go").touch()
    code, out, err = ended(process)
    assert code == 0
    assert "s3 cr3t" not in out + err + listed
    assert b"s3 cr3t" not in kept


def test_what_the_host_lacks_is_told_before_anything_starts(trainlaunch: Runs, make_job: MakeJob, state: Path) -> None:
    """A missing secret, bind source and working folder at once, 125, no run."""
    job = make_job(
        secrets={"TOKEN": {"env": "UNSET_TOKEN"}},
        mounts=[{"type": "bind", "source": "./gone", "target": "/work"}],
        working_dir="/work/sub",
    )
    done = trainlaunch("up", str(job))
    assert done.returncode == 125
    assert [code for code in ("TL507", "TL511", "TL513") if f"error[{code}]" in done.stderr] == [
        "TL507",
        "TL511",
        "TL513",
    ]
    assert list(state.glob("*/*")) == []


def test_a_state_that_can_not_be_written_is_told(trainlaunch: Runs, make_job: MakeJob, tmp_path: Path) -> None:
    """TL514 names the variable to set."""
    (tmp_path / "file").touch()
    done = trainlaunch("up", str(make_job(command=["true"])), env={"XDG_STATE_HOME": str(tmp_path / "file")})
    assert done.returncode == 125
    assert "error[TL514]" in done.stderr
    assert "XDG_STATE_HOME" in done.stderr


@pytest.mark.parametrize("by", ["option", "file"])
def test_a_local_job_has_no_rendering(trainlaunch: Runs, make_job: MakeJob, by: str) -> None:
    """TL401 names the command that runs it; the other targets render the same file."""
    job = str(make_job(target="local" if by == "file" else "docker"))
    done = trainlaunch("render", job, *(["--target", "local"] if by == "option" else []))
    assert (done.returncode, done.stdout) == (2, "")
    assert "error[TL401]: target local renders no file" in done.stderr
    assert f"trainlaunch up {job} --target local" in done.stderr
    assert trainlaunch("render", job, "--target", "compose").returncode == 0


def test_a_closed_stdout_does_not_end_the_job(start: Start, make_job: MakeJob, trainlaunch: Runs) -> None:
    """`up | head -1` leaves the job to its end, and its code is still up's."""
    script = "echo 0; while [ ! -e go ]; do sleep 0.05; done; for each in $(seq 19); do echo $each; done; exit 4"
    path = make_job(command=["/bin/sh", "-c", script])
    job = str(path)
    process = start("up", job)
    read_until(process, b"0\n")
    assert process.stdout is not None
    process.stdout.close()
    (path.parent / "go").touch()
    code, _, err = ended(process)
    assert (code, err.count("nobody reads stdout any more; the job goes on")) == (4, 1)
    assert trainlaunch("logs", job).stdout.splitlines()[-1] == "19"


def test_a_scripts_training_process_checkpoints_too(start: Start, make_job: MakeJob) -> None:
    """The script's forwarder hands the signal on, among all the processes of a host, and the script's code counts."""
    save = "import signal, sys, time\n"
    save += "signal.signal(15, lambda *_: (print('saved', flush=True), sys.exit(5)))\n"
    save += "print('ready', flush=True)\nwhile True: time.sleep(0.1)\n"
    process = start("up", str(make_job(script=f"python3 -c '{save.replace(chr(39), chr(34))}'\n")))
    read_until(process, b"ready\n")
    process.send_signal(signal.SIGTERM)
    assert ended(process)[:2] == (5, "saved\n")


def test_a_reused_name_of_another_job_is_told(start: Start, make_job: MakeJob, trainlaunch: Runs) -> None:
    """`--name` of a run that another job holds is TL506 with the name to give."""
    job = make_job(command=["sleep", "60"], name="first-job")
    assert trainlaunch("up", "-d", str(job), "--name", "shared-name").stdout == "shared-name\n"
    other = make_job(command=["true"], name="second-job")
    done = trainlaunch("up", str(other), "--name", "shared-name")
    assert done.returncode == 125
    assert "the name shared-name is taken by a local run of job first-job" in done.stderr
    assert trainlaunch("up", str(other), "--name", "shared-name-2").returncode == 0
