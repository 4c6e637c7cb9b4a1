"""A job gets the signals that its container gets, has the time to save its work, and its exit code comes out."""

from __future__ import annotations

import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from trainlaunch.plan.launch_plan import LaunchPlan

from tests.conftest import Runs
from tests.preflight.containers import EVERY_SHELL, SHM, Case, RunsCases, pid_1_arguments
from tests.preflight.plans import plan

pytestmark = pytest.mark.docker

# A training process that saves its work for a while when it is told to stop, then ends with 7.
SAVES = """
import os, signal, sys, time
def save(*_):
    time.sleep(0.3)
    print("saved", flush=True)
    sys.exit(7)
signal.signal(signal.SIGNAME, save)
{ready}
time.sleep(30)
print("was not told")
"""
READY = 'open("/tmp/ready", "w").close()'
TELLS_PID_1 = "os.kill(1, signal.SIGNAME)"
BY_DEFAULT = "import os, signal, time\nos.kill(1, signal.SIGNAME)\ntime.sleep(30)"
# Its DataLoader workers must outlive the signal: a dead one makes the main process raise while it saves.
TRAINS = """
import signal, sys, time
import torch
from torch.utils.data import DataLoader, TensorDataset
def save(*_):
    time.sleep(0.5)
    print("saved", flush=True)
    sys.exit(7)
signal.signal(signal.SIGTERM, save)
for step, batch in enumerate(DataLoader(TensorDataset(torch.zeros(100000, 10)), batch_size=4, num_workers=2)):
    if step == 20:
        open("/tmp/ready", "w").close()
    time.sleep(0.01)
"""


def program(text: str, name: str = "SIGTERM", ready: str = READY) -> str:
    """Return the Python text for one signal."""
    return text.replace("{ready}", ready).replace("SIGNAME", name)


def command(text: str) -> LaunchPlan:
    """Return a plan whose command is this Python text."""
    return plan(command=["python3", "-c", text])


def script(text: str, *, before: str = "", after: str = "\necho the script went on", **fields: Any) -> LaunchPlan:
    """Return a plan whose script runs this Python text."""
    return plan(command=None, script=f"{before}python3 -c '{text}'{after}\n", **fields)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGUSR1"])
@pytest.mark.parametrize("job", [command, script])
def test_job_of_pid_1_saves_its_work(
    docker_run: Runs, base_image: str, shell: str, name: str, job: Callable[[str], LaunchPlan]
) -> None:
    """Without an init the wrapper is pid 1, stays, and hands signals on."""
    started = pid_1_arguments(Case(job(program(SAVES, name, TELLS_PID_1))), shell)
    done = docker_run(SHM, *started[0], base_image, *started[1])
    assert (done.returncode, done.stdout) == (7, "saved\n"), done.stderr


@EVERY_SHELL
def test_job_of_pid_1_ends_by_an_unhandled_signal(docker_run: Runs, base_image: str, shell: str) -> None:
    """As pid 1 itself it would ignore SIGTERM, and be killed after the grace period."""
    started = pid_1_arguments(Case(command(program(BY_DEFAULT))), shell)
    assert docker_run(SHM, *started[0], base_image, *started[1]).returncode == 143


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_interrupt_is_not_lost_in_the_background(docker_run: Runs, base_image: str, shell: str) -> None:
    """A shell ignores SIGINT for what it starts in the background; Python would then raise no KeyboardInterrupt.

    busybox has no way to undo that: there a job must handle SIGINT itself.
    """
    text = "import os, time\ntry: os.kill(1, 2); time.sleep(20)\nexcept KeyboardInterrupt: exit(9)"
    started = pid_1_arguments(Case(command(text)), shell)
    assert docker_run(SHM, *started[0], base_image, *started[1]).returncode == 9


def test_pid_1_passes_streams_and_codes_through(docker_run: Runs, base_image: str, shell: str) -> None:
    """126 and 127 are what `docker run` says of a command that can't run; nothing is taken for a builtin."""
    for argv, code in (
        (["cat"], 0),
        (["sh", "-c", "exit 42"], 42),
        (["no-such"], 127),
        (["/etc/passwd"], 126),
        (["tl_pass", "1"], 127),
    ):
        started = pid_1_arguments(Case(plan(command=argv)), shell)
        done = docker_run("--interactive", SHM, *started[0], base_image, *started[1], input="read me")
        assert (done.returncode, done.stdout) == (code, "read me" if argv == ["cat"] else ""), done.stderr


@EVERY_SHELL
def test_script_under_an_init_saves_its_work(run_cases: RunsCases) -> None:
    """`sh -c` under an init passes no signal on to its child: measured."""
    cases = [Case(script(program(SAVES, name)), signals=(name,)) for name in ("SIGTERM", "SIGINT", "SIGHUP")]
    for ended in run_cases(cases, SHM):
        assert (ended.code, ended.out) == (7, "saved\n"), ended.err


def test_stop_signal_of_the_job_is_handed_on(run_cases: RunsCases) -> None:
    """Whatever the job file asks for."""
    case = Case(script(program(SAVES, "SIGWINCH"), stop_signal="SIGWINCH"), signals=("SIGWINCH",))
    (ended,) = run_cases([case], SHM)
    assert (ended.code, ended.out) == (7, "saved\n"), ended.err


def test_script_goes_on_after_a_user_signal(run_cases: RunsCases) -> None:
    """SIGUSR1 asks a trainer to save and go on, as batch systems do."""
    text = program(SAVES, "SIGUSR1").replace("sys.exit(7)", "os._exit(5)")
    case = Case(script(text, after=" || echo went on after $?; exit 6"), signals=("SIGUSR1",))
    (ended,) = run_cases([case], SHM)
    assert (ended.code, ended.out) == (6, "saved\nwent on after 5\n"), ended.err


def test_background_children_and_exec_of_a_script_save_their_work(run_cases: RunsCases) -> None:
    """The shell waits for those that it started with `&`; with `exec` it is the training process itself."""
    in_background = Case(script(program(SAVES), after=" &\nwait\necho no"), signals=("SIGTERM",))
    replaced = Case(script(program(SAVES), before="exec "), signals=("SIGTERM",))
    waited, became = run_cases([in_background, replaced], SHM)
    assert (waited.code, waited.out) == (143, "saved\n")
    assert (became.code, became.out) == (7, "saved\n")


@pytest.mark.parametrize("shell", ["dash"])
@pytest.mark.parametrize("sh", ["busybox", "bash"])
def test_script_saves_its_work_whatever_sh_is(run_cases: RunsCases, sh: str) -> None:
    """The script's own shell is the image's /bin/sh."""
    case = Case(script(program(SAVES)), signals=("SIGTERM",))
    other = f"ln -sf /bin/{sh} /bin/sh"
    (ended,) = run_cases([replace(case, setup=other)], SHM)
    assert (ended.code, ended.out) == (7, "saved\n")


def test_script_piped_to_tee_saves_its_work(run_cases: RunsCases) -> None:
    """A tee that ends first breaks the pipe of a job that still saves; it ends by itself, with the job."""
    case = Case(script(program(SAVES), after=" 2>&1 | tee /tmp/log; echo kept $(cat /tmp/log)"), signals=("SIGTERM",))
    (ended,) = run_cases([case], SHM)
    assert ended.out == "saved\n", ended.err


@pytest.mark.parametrize("shell", ["dash"])
@pytest.mark.parametrize("before", ["", pytest.param("exec ", marks=pytest.mark.long)], ids=["child", "exec"])
def test_workers_of_a_script_outlive_the_signal(run_cases: RunsCases, torch_image: str, before: str) -> None:
    """Signalling the whole process group kills them, and saving ends in `worker is killed by signal: Terminated`."""
    case = Case(script(TRAINS, before=before), signals=("SIGTERM",))
    (ended,) = run_cases([case], SHM, image=torch_image)
    assert (ended.code, ended.out) == (7, "saved\n"), ended.err


def test_docker_stop_lets_a_script_save_its_work(docker_run: Runs, base_image: str) -> None:
    """The whole way: engine, init, wrapper, the script's shell, Python."""
    name = f"trainlaunch-test-{uuid.uuid4().hex[:12]}"
    entrypoint, argv = pid_1_arguments(Case(script(program(SAVES))), "dash")
    stopper = threading.Thread(target=stop_when_ready, args=(name,))
    stopper.start()
    done = docker_run("--init", f"--name={name}", SHM, *entrypoint[1:], base_image, *argv)
    stopper.join()
    assert (done.returncode, done.stdout) == (7, "saved\n"), done.stderr


def stop_when_ready(name: str) -> None:
    """Stop the container once its job has made /tmp/ready."""
    for _ in range(200):
        if (
            subprocess.run(
                ["docker", "exec", name, "test", "-e", "/tmp/ready"], capture_output=True, check=False
            ).returncode
            == 0
        ):
            subprocess.run(["docker", "stop", "--time=20", name], capture_output=True, check=False)
            return
        time.sleep(0.1)
