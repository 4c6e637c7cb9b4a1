"""`shell` on real engines and on this host."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.job.reserved import LABEL_PREFIX
from trainlaunch.run.base.backend import Chunk
from trainlaunch.run.docker.attachment import ContainerAttachment
from trainlaunch.run.docker.client import Engine, find_endpoint
from trainlaunch.run.docker.shell import SHELL_LABEL, EngineCommand

from tests.jobs import write_job
from tests.run.conftest import docker
from tests.shells import ShellContract, Shells, gone, shells

LOADER = {"num_workers": 2, "batch_size": 1, "sample": [{"shape": [1], "dtype": "float32"}]}


@pytest.fixture
def job(fields: dict[str, Any], tmp_path: Path) -> Path:
    """Write the job and return its path."""
    return write_job(
        tmp_path, **{**fields, "command": ["sleep", "600"], "env": {"GREETING": "hi there"}, "data_loader": LOADER}
    )


def containers(name: str) -> list[str]:
    """Return the containers of shells of a job."""
    listed = docker("ps", "--all", f"--filter=label={SHELL_LABEL}", "--format={{.Names}}").split()
    return [each for each in listed if each.startswith(name)]


@pytest.mark.docker
class TestDocker(ShellContract):
    """Target docker."""

    @pytest.fixture
    def left(self, job_name: str) -> Callable[[], object]:
        """Return what lists the containers."""
        return lambda: containers(job_name)

    @pytest.fixture
    def shell(self, job: Path) -> Iterator[Shells]:
        """Return shells of the job."""
        with shells(job.parent) as found:
            yield found

    def test_it_has_the_jobs_limits_and_is_no_run(self, shell: Shells, left: Callable[[], Any], job_name: str) -> None:
        """/dev/shm, memory and mounts are the plan's; ps, status and down know nothing of it."""
        terminal = shell.on_terminal().ready()
        terminal.types(b"df -k /dev/shm | tail -1\n").until(b"65536")
        assert docker("inspect", "--format={{.HostConfig.Memory}}", *left()) == str(256 << 20)
        assert docker("ps", "--quiet", f"--filter=label=dev.trainlaunch.job={job_name}") == ""
        assert docker("ps", "--quiet", "--filter=label=dev.trainlaunch.run", f"--filter=name={job_name}") == ""
        terminal.types(b"exit\n").end()

    def test_an_image_without_bash_gives_sh(self, shell: Shells) -> None:
        """`-- CMD` needs neither."""
        done = shell.on_pipes("/bin/sh", "-c", 'PATH=/nowhere; if command -v bash; then exec bash; fi; echo "$0"')
        assert done.stdout == b"/bin/sh\n", done.stderr

    def test_a_run_is_entered_and_left_as_it_was(self, shell: Shells, job_name: str) -> None:
        """A command in its container; one whose terminal is killed ends, and the job goes on."""
        subprocess.run([*_trainlaunch(), "up", "-d", "job.yaml"], cwd=shell.folder, env=shell.env, check=True)
        try:
            done = shell.on_pipes("sh", "-c", 'echo "$GREETING"; exit 4', what=job_name)
            assert (done.returncode, done.stdout) == (4, b"hi there\n"), done.stderr
            terminal = shell.on_terminal(job_name, "sh", "-c", "echo beg''un; exec sleep 4321").until(b"begun")
            assert "sleep 4321" in docker("top", job_name, "-o", "pid,args")
            terminal.kill()
            assert gone(lambda: "sleep 4321" in docker("top", job_name, "-o", "pid,args"))
            assert "sleep 600" in docker("top", job_name, "-o", "pid,args")
        finally:
            subprocess.run([*_trainlaunch(), "down", job_name], cwd=shell.folder, env=shell.env, check=False)
        done = shell.on_pipes("true", what=job_name)
        assert done.returncode == 125
        assert b"TL510" in done.stderr


@pytest.mark.docker
class TestCompose:
    """Target compose: the same container, of the plan for it."""

    @pytest.fixture
    def left(self, job_name: str) -> Callable[[], object]:
        """Return what lists the containers."""
        return lambda: containers(job_name)

    @pytest.fixture
    def shell(self, job: Path) -> Iterator[Shells]:
        """Return shells of the job for that target."""
        with shells(job.parent, ["--target", "compose"]) as found:
            yield found

    def test_what_it_is_made_without_is_said(self, shell: Shells, job: Path) -> None:
        """The network of the job's project, and a patch of its text."""
        assert b"made without the job's network\n" in shell.on_pipes("true").stderr
        patch = 'patches.compose={"volumes": {"cache": {"name": "other"}}}'
        with shells(job.parent, ["--target", "compose", "--set", patch]) as patched:
            assert b"made without the job's network and patches.compose\n" in patched.on_pipes("true").stderr


@pytest.mark.docker
@pytest.mark.long
class TestComposeWholly(ShellContract):
    """All that Docker's container does."""

    left = TestCompose.left
    shell = TestCompose.shell


class TestLocal(ShellContract):
    """Target local: a process of this host on the terminal itself."""

    @pytest.fixture
    def left(self, shell: Shells) -> Callable[[], object]:
        """Return what lists the processes in the job's folder."""
        return lambda: _processes_in(shell.folder)

    @pytest.fixture
    def shell(self, tmp_path: Path) -> Iterator[Shells]:
        """Return shells of a job of this host, whose state folder stays empty."""
        folder = tmp_path / "work"
        fields = {"name": "digits", "command": ["true"], "env": {"GREETING": "hi there"}, "target": "local"}
        write_job(folder, **fields, image="trainer:1", data_loader=LOADER)
        with shells(
            folder, TRAINLAUNCH_STATE_DIR=str(tmp_path / "state"), XDG_STATE_HOME=str(tmp_path / "state")
        ) as found:
            yield found
        assert not list((tmp_path / "state").rglob("run.json"))

    def test_a_run_of_this_host_is_entered(self, shell: Shells) -> None:
        """Its folder and its variables."""
        shutil.copy(shell.folder / "job.yaml", shell.folder / "long.yaml")
        words = ["up", "-d", "long.yaml", "--set", 'command=["sleep","600"]']
        up = subprocess.run(
            [*_trainlaunch(), *words], cwd=shell.folder, env=shell.env, capture_output=True, check=False
        )
        assert up.returncode == 0, up.stderr
        try:
            done = shell.on_pipes("sh", "-c", 'echo "$GREETING" "$PWD"; exit 4', what="digits")
            assert (done.returncode, done.stdout) == (4, f"hi there {shell.folder}\n".encode()), done.stderr
        finally:
            subprocess.run([*_trainlaunch(), "down", "digits"], cwd=shell.folder, env=shell.env, check=False)
            time.sleep(0.1)


def _trainlaunch() -> list[str]:
    return [sys.executable, "-m", "trainlaunch"]


def _processes_in(folder: Path) -> list[str]:
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if (process / "cwd").resolve() == folder and "trainlaunch" not in (process / "cmdline").read_text():
                    found.append(process.name)
            except OSError:
                continue
    return found


@pytest.mark.docker
def test_a_silent_command_keeps_its_connection(job_name: str, base_image: str) -> None:
    """An answer of the engine's has a minute; neither a shell nor a run's own streams have such a limit."""
    container = docker("create", "--interactive", f"--label={LABEL_PREFIX}job={job_name}", base_image, "cat")
    engine = Engine(find_endpoint())
    attached = ContainerAttachment(engine, container, terminal=False)
    docker("start", container)
    command = EngineCommand(engine, container, ["cat"], False)
    assert (attached._socket.gettimeout(), command._plain.gettimeout()) == (None, None)
    for each in (command, attached):  # the container ends with the latter
        each.send(b"hi\n")
        each.end_input()
        came = each.chunks() if each is attached else (Chunk(*part) for part in command.output())
        assert b"".join(part.data for part in came) == b"hi\n"
    for each in (command, attached, engine):
        each.close()
