"""No engine, or none that we may talk to: said in one sentence with the way out, exit 125 from up."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.docker.client import DEFAULT_HOST, Endpoint, find_endpoint, probe

from tests.conftest import Runs
from tests.jobs import write_job
from tests.run.conftest import ROOT

NOBODY = 65534


def test_up_without_an_engine_is_125(trainlaunch: Runs, tmp_path: Path) -> None:
    """TL501, the socket that was tried, what named it, and that nothing is there."""
    done = trainlaunch("up", str(write_job(tmp_path)), env={"DOCKER_HOST": "unix:///nonexistent"})
    assert (done.returncode, done.stdout) == (125, "")
    assert "error[TL501]: no Docker engine answers at unix:///nonexistent (DOCKER_HOST)" in done.stderr
    assert "/nonexistent does not exist" in done.stderr
    assert "unset DOCKER_HOST" in done.stderr


@pytest.mark.parametrize(("verb", "code"), [("ps", 3), ("status", 3), ("logs", 3), ("wait", 125), ("down", 3)])
def test_other_verbs_say_target_unavailable(trainlaunch: Runs, tmp_path: Path, verb: str, code: int) -> None:
    """3, and 125 where the exit code is otherwise the job's."""
    argument = [] if verb == "ps" else ["digits"]
    done = trainlaunch(verb, *argument, env={"DOCKER_HOST": "unix:///nonexistent", "XDG_STATE_HOME": str(tmp_path)})
    assert done.returncode == code
    assert "error[TL501]" in done.stderr


def test_logs_that_follow_have_125(trainlaunch: Runs, tmp_path: Path) -> None:
    """Their exit code is the job's, and there is none."""
    nothing = {"DOCKER_HOST": "unix:///nonexistent", "XDG_STATE_HOME": str(tmp_path)}
    assert trainlaunch("logs", "-f", "digits", env=nothing).returncode == 125


def test_a_dead_daemon_is_told_from_a_missing_socket(tmp_path: Path) -> None:
    """The file is there and nobody listens."""
    path = tmp_path / "docker.sock"
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))
    with pytest.raises(TargetUnavailable) as refused:
        probe(Endpoint(f"unix://{path}", ""))
    (finding,) = refused.value.diagnostics
    assert finding.code == "TL501"
    assert "no engine listens on it" in finding.why
    assert "systemctl start docker" in finding.fix


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_socket_of_others_is_a_matter_of_permission(tmp_path: Path) -> None:
    """TL502 names the socket and the group, and it is no missing engine."""
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:2]:
        parent.chmod(parent.stat().st_mode | 0o011)
    path = tmp_path / "docker.sock"
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))
        sock.listen()
        path.chmod(0o600)
        code = (
            "import sys; sys.path.insert(0, sys.argv[1])\n"
            "from trainlaunch.run.docker.client import Endpoint, probe\n"
            "import os; os.setuid(int(sys.argv[3]))\n"
            "try: probe(Endpoint(f'unix://{sys.argv[2]}', ''))\n"
            "except Exception as e: print(e.diagnostics[0].code, e.diagnostics[0].fix)\n"
        )
        argv = [sys.executable, "-c", code, str(ROOT), str(path), str(NOBODY)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("TL502 ")
    assert "run `sudo usermod -aG docker" in done.stdout  # behind Podman, where one is here


def test_a_tcp_engine_that_refuses_is_named(trainlaunch: Runs) -> None:
    """The address and the vendor's words; no traceback."""
    done = trainlaunch("ps", env={"DOCKER_HOST": "tcp://127.0.0.1:9"})
    assert done.returncode == 3
    assert "error[TL501]: no Docker engine answers at tcp://127.0.0.1:9 (DOCKER_HOST)" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_docker_context_is_honoured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DOCKER_HOST first, then the context that the docker command would use, then the default socket."""
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    assert find_endpoint() == Endpoint(DEFAULT_HOST, "")
    write_context(tmp_path, "rootless", "unix:///run/user/1000/docker.sock")
    monkeypatch.setenv("DOCKER_CONTEXT", "rootless")
    assert find_endpoint() == Endpoint("unix:///run/user/1000/docker.sock", "docker context rootless")
    monkeypatch.setenv("DOCKER_CONTEXT", "elsewhere")
    with pytest.raises(TargetUnavailable):
        find_endpoint()
    monkeypatch.delenv("DOCKER_CONTEXT")
    (tmp_path / "config.json").write_text(json.dumps({"currentContext": "rootless"}))
    assert find_endpoint().named_by == "docker context rootless"
    monkeypatch.setenv("DOCKER_HOST", "tcp://10.0.0.1:2375")
    assert find_endpoint() == Endpoint("tcp://10.0.0.1:2375", "DOCKER_HOST")


def write_context(config: Path, name: str, host: str) -> None:
    """Write a context as `docker context create` does."""
    folder = config / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest()
    folder.mkdir(parents=True)
    meta = {"Name": name, "Metadata": {}, "Endpoints": {"docker": {"Host": host, "SkipTLSVerify": False}}}
    (folder / "meta.json").write_text(json.dumps(meta))


@pytest.mark.parametrize(
    ("installed", "path", "why", "fix"),
    [
        (False, "/usr/bin", "the Python package paramiko, which is not installed", "pip install 'docker[ssh]'"),
        (True, "/nowhere", "the program ssh, which is not on PATH", "install an SSH client"),
    ],
    ids=["paramiko", "ssh"],
)
def test_an_engine_over_ssh_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, installed: bool, path: str, why: str, fix: str
) -> None:
    """The SDK needs a package that it doesn't bring, and the program; its own words name neither."""
    for name in [each for each in sys.modules if each.partition(".")[0] == "paramiko"]:
        monkeypatch.delitem(sys.modules, name)
    if installed:
        (tmp_path / "paramiko.py").touch()
        monkeypatch.syspath_prepend(tmp_path)
    else:
        monkeypatch.setitem(sys.modules, "paramiko", None)
    monkeypatch.setenv("PATH", path)
    with pytest.raises(TargetUnavailable) as refused:
        probe(Endpoint("ssh://me@build.example", "DOCKER_HOST"))
    (finding,) = refused.value.diagnostics
    assert why in finding.why
    assert fix in finding.fix
