"""A Podman of the test run's own: its storage, its service and its socket; the host's own Podman is left alone."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.engine import images

CONF = "CONTAINERS_CONF"


@dataclass(frozen=True)
class Podman:
    """`command` is a `podman` on this storage; `service` is the socket of one that always runs."""

    folder: Path
    command: Path

    @property
    def host(self) -> str:
        """The service, as DOCKER_HOST names it."""
        return f"unix://{self.folder}/podman.sock"

    def __call__(self, *args: str) -> str:
        """Run the command and return its stdout; an error is left to the assertions of the caller."""
        done = subprocess.run([self.command, *args], capture_output=True, text=True, timeout=120, check=False)
        return done.stdout.strip()

    def serve(self, socket: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start a service on another socket of the same folder, and return it when it answers."""
        path = self.folder / socket
        with (self.folder / f"{socket}.log").open("wb") as log:
            service = subprocess.Popen(
                [self.command, "system", "service", "--time=0", f"unix://{path}"],
                env={**os.environ, **environment},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        for _ in range(300):
            if path.is_socket():
                return service
            time.sleep(0.1)
        service.kill()
        raise RuntimeError(f"no Podman service within 30 s: {(self.folder / f'{socket}.log').read_text()}")


@pytest.fixture(autouse=True)
def _no_idle_dns() -> None:
    """End an aardvark-dns that serves no network: one that missed its own end answers for no later network either."""
    for each in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            words = (each / "cmdline").read_bytes().split(b"\0")
            if not words[0].endswith(b"/aardvark-dns"):
                continue
            served = Path(words[words.index(b"--config") + 1].decode())
            if not any(network.name != "aardvark.pid" for network in served.iterdir()):
                os.kill(int(each.name), signal.SIGTERM)


@pytest.fixture(scope="session")
def podman(engine: str) -> Iterator[Podman]:
    """Return a Podman whose storage has the base image."""
    real = shutil.which("podman")
    if real is None or os.getuid():
        reason = "podman is not installed" if real is None else "rootful Podman needs root"
        if os.environ.get("CI") == "true":
            pytest.fail(f"{reason}, and CI may not skip its tests", pytrace=False)
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="podman-", dir="/tmp"))  # Podman takes a runroot of at most 50 characters
    command = folder / "bin/podman"
    command.parent.mkdir()
    places = " ".join(f"--{each} {folder}/{each}" for each in ("root", "runroot", "tmpdir"))
    command.write_text(
        f'#!/bin/sh\nexport CONTAINERS_CONF=${{{CONF}:-{folder}/containers.conf}}\nexec {real} {places} "$@"\n'
    )
    command.chmod(0o755)
    (folder / "containers.conf").write_text(configuration(folder))
    podman = Podman(folder, command)
    service = podman.serve("podman.sock")
    try:
        _load(podman, images.base_image())
        _need_cgroups(podman, images.BASE_IMAGE)
        yield podman
    finally:
        podman("rm", "--all", "--force", "--volumes", "--time=0")
        service.terminate()
        service.wait(timeout=30)
        podman("system", "reset", "--force")
        # Where a container's keeper still cleaned up, its storage is mounted on itself again.
        subprocess.run(["umount", "--lazy", folder / "root/overlay"], capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)


def configuration(folder: Path, backend: str = "") -> str:
    """Return a containers.conf: networks of its own, and limits that this host lets one set."""
    limits = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
    hard = {name: min(resource.getrlimit(which)[1], 4096) for name, which in limits.items()}
    network = f'[network]\nnetwork_config_dir = "{folder}/networks{backend}"\nnetwork_backend = "{backend}"\n'
    return f"[containers]\ndefault_ulimits = {[f'{name}={limit}:{limit}' for name, limit in hard.items()]}\n{network}"


def _load(podman: Podman, image: str) -> None:
    saved = subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE)
    load = [podman.command, "load", "--quiet"]
    subprocess.run(load, stdin=saved.stdout, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    assert saved.stdout is not None
    saved.stdout.close()
    assert saved.wait() == 0


def _need_cgroups(podman: Podman, image: str) -> None:
    """Skip with the runtime's own sentence where it can't start a container under this host's cgroups, as crun can't
    under hybrid ones. Whatever else keeps a container from starting is a failure.
    """
    argv = [podman.command, "run", "--rm", image, "true"]
    for _ in range(5):  # Docker and netavark write one table of iptables, and each may find the other's chain half made
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode == 0 or "iptables" not in done.stderr:
            break
        time.sleep(1)
    said = done.stderr.strip()
    if done.returncode and "cgroup" in said:
        pytest.skip(f"Podman can't start a container on this host: {said.splitlines()[-1]}")
    assert done.returncode == 0, said


@pytest.fixture(autouse=True)
def on_podman(podman: Podman, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the `docker` command and trainlaunch talk to Podman's service."""
    monkeypatch.setenv("DOCKER_HOST", podman.host)


@pytest.fixture(scope="session")
def base_image(podman: Podman) -> str:
    """Return the tag of the base image, which this Podman has."""
    return images.BASE_IMAGE
