"""What is Podman's own: how it is found, what it leaves out, and that the rendered text means the same to it."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.run.docker.backend import DockerBackend
from trainlaunch.run.docker.client import EngineRefused

from tests.conftest import Runs
from tests.jobs import write_job
from tests.run.conftest import ROOT, SMALL
from tests.run.gate import Gate
from tests.run.podman.conftest import Podman
from tests.run.registry import Image, digest_of, registry_of
from tests.run.test_lock import image  # noqa: F401 - a fixture
from tests.run.test_up import ended, read_until

pytestmark = pytest.mark.docker
MakeJob = Callable[..., Path]
# What a job sees of every flag, one fact a line. An anonymous volume is the user's own on Podman, and root's on Docker.
REPORT = r"""
echo shm $(df -k /dev/shm | tail -1 | tr -s ' ' | cut -d' ' -f2)
echo memory $(cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null)
echo cpu $(cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null)
echo user $(id -u) $(id -g) $(id -G)
echo limits $(ulimit -Sn) $(ulimit -Hn) $(ulimit -Sc)
printf '%s|' "$PWD" "$A" "$NASTY" "$EMPTY" "$YES" "$TOKEN" "$RENAMED" "$FRONT" "$@" | od -An -c
for each in /root-file /workspace/file /data/file /cache/file /dev/shm/file; do
  touch "$each" 2>/dev/null && echo "$each written" || echo "$each refused"
done
printf '#!/bin/sh\necho tmp runs\n' >/tmp/tool; chmod +x /tmp/tool; /tmp/tool
cat /proc/1/comm | grep -c init
"""
WIDE: dict[str, Any] = {
    **SMALL,
    "image_entrypoint": ["/usr/bin/env", "FRONT=1"],
    "working_dir": "/workspace",
    "user": "1000:1000",
    "group_add": ["44"],
    "read_only": True,
    "stop_signal": "SIGINT",
    "stop_grace_period": "1m30s",
    "env": {"A": "1", "NASTY": " $HOME `x` 'q' \"d\" \\ é\n", "EMPTY": "", "YES": "no"},
    "labels": {"team": "vision $x", "empty": ""},
    "secrets": {"TOKEN": {"env": "TOKEN"}, "RENAMED": {"env": "HOST_TOKEN"}},
    "mounts": [
        {"type": "bind", "source": "./source 1", "target": "/workspace"},
        {"type": "bind", "source": "/usr/share", "target": "/data", "read_only": True},
        {"type": "tmpfs", "target": "/cache"},
        {"type": "scratch", "target": "/scratch"},
    ],
    "ulimits": {"nofile": {"soft": 1000, "hard": 2000}, "core": 0, "nproc": 4000},
    "healthcheck": {"interval": "45s", "timeout": "7s", "retries": 5, "start_period": "2m"},
    "resources": {"cpus": "1.5", "memory": "700Mi"},
}  # fmt: skip


def facts(output: str) -> str:
    """Return the report without the preflight's lines."""
    return "\n".join(line for line in output.splitlines() if not line.startswith("trainlaunch"))


@pytest.fixture
def wide_job(tmp_path: Path, job_name: str, base_image: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a job that uses every field that docker run can say, and reports what it got."""
    monkeypatch.setenv("TOKEN", "s3 $cret")
    monkeypatch.setenv("HOST_TOKEN", "other")
    source = tmp_path / "source 1"
    source.mkdir()
    source.chmod(0o777)
    command = ["/bin/sh", "-c", REPORT, "job", "--x={num_workers}", "", "-lead", "two\nlines\n", 'a $HOME "b"']
    return write_job(tmp_path, **{**WIDE, "name": job_name, "image": base_image, "command": command})


@pytest.mark.usefixtures("compose")
def test_the_rendered_text_means_the_same_to_podman(
    trainlaunch: Runs, wide_job: Path, podman: Podman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Docker's docker, Podman by that name, and `up` on Podman, by Compose too: each line of the report is the same."""
    text = trainlaunch("render", str(wide_job))
    assert text.returncode == 0, text.stderr
    on_podman = trainlaunch("up", str(wide_job))
    by_compose = trainlaunch("up", "--target", "compose", str(wide_job))
    podman("rm", "--all", "--force", "--volumes", "--time=0")
    monkeypatch.delenv("DOCKER_HOST")
    of_docker = run_text(text.stdout, tmp_path)
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "docker").symlink_to(podman.command)
    monkeypatch.setenv("PATH", f"{shims}:{os.environ['PATH']}")
    of_podman = run_text(text.stdout, tmp_path)
    assert of_docker.returncode == of_podman.returncode == on_podman.returncode == 0, (
        of_podman.stderr + on_podman.stderr
    )
    assert "memory 734003200" in facts(of_docker.stdout)
    assert facts(of_podman.stdout) == facts(of_docker.stdout)
    assert facts(on_podman.stdout) == facts(of_docker.stdout)
    assert facts(by_compose.stdout) == facts(of_docker.stdout), by_compose.stderr


def run_text(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a rendered text as one does: piped into sh, in the job file's folder."""
    return subprocess.run(["sh"], input=text, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_podman_records_what_the_text_says(
    trainlaunch: Runs, wide_job: Path, podman: Podman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels, stop and health settings, which a job can't see: as the text says them, and as `up` does."""
    text = trainlaunch("render", str(wide_job)).stdout
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "docker").write_text(f'#!/bin/sh\nshift\nexec {podman.command} create "$@"\n')
    (shims / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{shims}:{os.environ['PATH']}")
    made = run_text(text, tmp_path)
    assert made.returncode == 0, made.stderr
    by_text = recorded(podman, made.stdout.strip())
    assert trainlaunch("up", "--detach", str(wide_job)).returncode == 0
    assert recorded(podman, re.search(r" --name (\S+)", text)[1]) == by_text  # type: ignore[index]
    assert (by_text["stop"], by_text["timeout"], by_text["label"]) == (2, 90, "vision $x")
    assert by_text["health"] == (45, 7, 5, 120)


def recorded(podman: Podman, container: str) -> dict[str, Any]:
    """Return what Podman keeps of those settings, and remove the container."""
    (found,) = json.loads(podman("inspect", container))
    podman("rm", "--force", "--time=0", container)
    config = found["Config"]
    check = config["Healthcheck"]
    times = [check[each] // 10**9 for each in ("Interval", "Timeout")]
    return {
        "stop": config["StopSignal"],
        "timeout": config["StopTimeout"],
        "label": config["Labels"]["team"],
        "health": (*times, check["Retries"], check["StartPeriod"] // 10**9),
        "check": check["Test"],
    }


def test_a_followed_log_loses_nothing_at_the_end(start: Callable[..., Any], make_job: MakeJob, gate: Gate) -> None:
    """Podman drops lines of a log that is followed while the job ends; `logs -f` gives each of them."""
    command = ["/bin/sh", "-c", f"echo ready; {gate.waits}; seq 1 20000; exit 9"]
    job = str(make_job(command=command, mounts=gate.mounts))
    process = start("up", "--detach", job)
    assert process.wait(timeout=60) == 0
    following = start("logs", "-f", job)
    seen = read_until(following, b"ready\n").decode()
    gate.open()
    code, rest, _ = ended(following)
    assert code == 9
    assert (seen + rest).partition("ready\n")[2] == "".join(f"{number}\n" for number in range(1, 20_001))


def test_gpus_are_refused_since_podman_would_leave_them_out(trainlaunch: Runs, make_job: MakeJob) -> None:
    """TL505 before anything is made, and what to do."""
    done = trainlaunch("up", str(make_job(resources={"cpus": 1, "memory": "256Mi", "gpus": 1})))
    assert done.returncode == 125
    assert "error[TL505]: resources.gpus is 1 and Podman leaves GPUs out" in done.stderr


@pytest.mark.parametrize("source", ["./a,readonly", './a"b'])
def test_a_mount_that_podman_would_misread_is_refused(
    trainlaunch: Runs, make_job: MakeJob, tmp_path: Path, source: str
) -> None:
    """Its Docker API splits the source at commas: another folder would be mounted."""
    (tmp_path / source).mkdir()
    done = trainlaunch("up", str(make_job(mounts=[{"type": "bind", "source": source, "target": "/data"}])))
    assert done.returncode == 125
    assert f"error[TL401]: mounts[0].source {source} has a comma or a quotation mark" in done.stderr


@pytest.mark.skipif(Path("/run/systemd/system").exists(), reason="with systemd Podman runs its health checks")
def test_status_says_that_no_health_check_runs(trainlaunch: Runs, make_job: MakeJob) -> None:
    """Without systemd's timers no check ever runs: neither healthy nor starting is claimed."""
    job = str(make_job(command=["sleep", "60"], healthcheck={"interval": "1s", "timeout": "1s", "start_period": "1s"}))
    assert trainlaunch("up", "--detach", job).returncode == 0
    deadline = time.monotonic() + 60
    while "unchecked" not in (told := trainlaunch("status", job)).stdout:
        assert "healthy" not in told.stdout
        assert time.monotonic() < deadline, told.stdout
        time.sleep(0.5)
    assert "unchecked: no health check has run: Podman leaves them to timers of systemd" in told.stdout
    assert told.returncode == 0


def test_doctor_looks_at_a_run_that_goes_on(trainlaunch: Runs, make_job: MakeJob) -> None:
    """Through this host's /proc, where Podman's cgroups name their containers too."""
    job = str(make_job(command=["sleep", "60"]))
    assert trainlaunch("up", "-d", job).returncode == 0
    done = trainlaunch("doctor", job, "--output", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    (live,) = json.loads(done.stdout)["live"]
    assert live["shm"]["size"] == 64 << 20
    assert "sleep" in {each["name"] for each in live["processes"]}


def test_what_can_not_be_pulled_is_told_in_podmans_words(trainlaunch: Runs, make_job: MakeJob) -> None:
    """The commands to type are podman's."""
    done = trainlaunch("up", str(make_job(image="127.0.0.1:9/trainer:1")))
    assert done.returncode == 125
    assert "error[TL503]: podman: pull image 127.0.0.1:9/trainer:1" in done.stderr
    assert "`podman build -t 127.0.0.1:9/trainer:1 .`" in done.stderr


@pytest.fixture
def registry(podman: Podman, image: Image, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:  # noqa: F811
    """Serve an image, and talk to a Podman that takes it without TLS; return the image's reference."""
    with registry_of(image) as host:
        registries = podman.folder / "registries.conf"
        registries.write_text(f'[[registry]]\nlocation = "{host}"\ninsecure = true\n')
        service = podman.serve("pulling.sock", CONTAINERS_REGISTRIES_CONF=str(registries))
        monkeypatch.setenv("DOCKER_HOST", f"unix://{podman.folder}/pulling.sock")
        yield f"{host}/trainer:1"
        podman("rmi", "--force", f"{host}/trainer:1")
        service.terminate()
        service.wait(timeout=30)


def test_an_image_is_pulled_locked_and_run(
    trainlaunch: Runs,
    make_job: MakeJob,
    image: Image,  # noqa: F811
    registry: str,
) -> None:
    """Pulled by `up`, its ENTRYPOINT noticed, pinned by the registry's digest, run by that digest."""
    job = make_job(image=registry, command=["echo", "hello"], working_dir="/")
    first = trainlaunch("up", str(job))
    assert first.returncode == 125
    assert f"trainlaunch: pulling {registry}" in first.stderr
    assert "error[TL509]" in first.stderr
    locked = trainlaunch("lock", str(job))
    assert locked.returncode == 0, locked.stderr
    assert digest_of(image.manifest) in job.with_name("job.lock.yaml").read_text()
    done = trainlaunch("up", str(job))
    assert (done.returncode, done.stdout) == (0, "front ran with a b\nhello\n"), done.stderr


def test_an_image_of_localhost_can_not_be_pinned(trainlaunch: Runs, make_job: MakeJob, base_image: str) -> None:
    """Podman makes up a digest for what was built or loaded here; no registry has it."""
    done = trainlaunch("lock", str(make_job(image=f"localhost/{base_image}")))
    assert done.returncode == 3
    assert "error[TL515]" in done.stderr


class Without:
    """The command line on a host whose Docker engine is not there, and whose podman is this one."""

    def __init__(self, podman: Podman, folder: Path) -> None:
        self.environment = {
            **{key: value for key, value in os.environ.items() if key != "DOCKER_HOST"},
            "PATH": f"{podman.command.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "launcher"),
            "XDG_RUNTIME_DIR": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
        }

    def start(self, *args: str) -> subprocess.Popen[bytes]:
        """Start a command; its Docker socket is one that does not exist."""
        code = (
            "import sys; from pathlib import Path\n"
            "import trainlaunch.run.docker.client as client, trainlaunch.run.docker.podman_service as service\n"
            "client.DEFAULT_HOST, service.ROOTFUL = 'unix:///nonexistent/docker.sock', Path('/nonexistent')\n"
            "from trainlaunch.cli.main import main; sys.exit(main())\n"
        )
        argv = [sys.executable, "-c", code, *args]
        pipe = subprocess.PIPE
        return subprocess.Popen(argv, env=self.environment, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)

    def __call__(self, *args: str) -> tuple[int, str, str]:
        """Run a command to its end; return exit code, stdout and stderr."""
        return ended(self.start(*args))


@pytest.fixture
def without_docker(podman: Podman, tmp_path_factory: pytest.TempPathFactory) -> Without:
    """Return the command line on such a host."""
    return Without(podman, tmp_path_factory.mktemp("run"))


def test_the_socket_of_podman_is_used_and_said(without_docker: Without, podman: Podman, make_job: MakeJob) -> None:
    """Without a Docker engine, and with nothing to set."""
    socket = Path(without_docker.environment["XDG_RUNTIME_DIR"]) / "podman/podman.sock"
    socket.parent.mkdir()
    socket.symlink_to(podman.folder / "podman.sock")
    code, out, err = without_docker("up", str(make_job(command=["echo", "hello"])))
    assert (code, out) == (0, "hello\n"), err
    assert err.count(f"trainlaunch: no Docker engine is here; using Podman at {socket}\n") == 1


def test_a_podman_without_a_service_is_served_for_one_command(
    without_docker: Without, make_job: MakeJob, gate: Gate
) -> None:
    """The run outlives a killed `up` and its service, and every later command finds it."""
    command = ["/bin/sh", "-c", f"echo ready; {gate.waits}; echo last; exit 7"]
    job = str(make_job(command=command, mounts=gate.mounts))
    process = without_docker.start("up", job)
    read_until(process, b"ready\n")
    process.kill()
    _, _, err = ended(process)
    assert "using Podman, by a service for this command alone" in err
    assert " running " in without_docker("ps")[1]
    gate.open()
    assert without_docker("wait", job)[0] == 7
    here = ("--target", "docker")
    assert without_docker("logs", *here, job)[1] == "ready\nlast\n"
    assert without_docker("down", *here, job)[0] == 0
    assert without_docker("ps", *here)[1] == ""


def test_a_served_podman_leaves_no_service_behind(without_docker: Without) -> None:
    """Its process and its socket end with the command."""
    code, _, err = without_docker("ps")
    assert code == 0, err
    assert list(Path(without_docker.environment["XDG_RUNTIME_DIR"]).glob("trainlaunch-*")) == []
    folder = without_docker.environment["XDG_RUNTIME_DIR"]
    assert [each for each in command_lines() if folder in each] == []


def command_lines() -> list[str]:
    """Return the command line of every process of this host."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(each.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found


@pytest.mark.parametrize(("refused", "exit_code"), [(1, 0), (1000, 125)])
def test_a_start_is_tried_again_while_another_writes_the_firewall(
    refused: int, exit_code: int, trainlaunch: Runs, make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once refused is not heard of; a firewall that goes on refusing is said with Podman's words, none is kept."""
    tries = itertools.count(1)
    start = DockerBackend._started

    def busy(backend: DockerBackend, container: str) -> tuple[Any, Any]:
        if next(tries) <= refused:
            words = "netavark: unable to append rule: iptables: No chain/target/match by that name."
            raise EngineRefused("attach to container", words, 500)
        return start(backend, container)

    monkeypatch.setattr(DockerBackend, "_started", busy)
    monkeypatch.setattr("trainlaunch.run.podman.backend.FIREWALL_SECONDS", 0.1)
    job = make_job(command=["echo", "hello"])
    done = trainlaunch("up", str(job))
    assert done.returncode == exit_code, done.stderr
    assert next(tries) == (3 if exit_code == 0 else 6)
    assert ("No chain/target/match" in done.stderr) == bool(exit_code), done.stderr
    assert done.stdout == ("" if exit_code else "hello\n")
    trainlaunch("down", str(job), "--all")
    assert trainlaunch("ps", "--target", "docker").stdout == ""
