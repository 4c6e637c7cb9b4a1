"""Podman keeps the contract of all backends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from trainlaunch.run.backends import docker_backend
from trainlaunch.run.docker.backend import DockerBackend
from trainlaunch.run.docker.client import Engine, find_endpoint
from trainlaunch.run.podman.backend import PodmanBackend

from tests.run.contract import BackendContract, ShmContract, UserContract
from tests.run.store_contract import StoreContract


@pytest.mark.docker
class TestPodman(UserContract, BackendContract):
    """Real containers of a rootful Podman, through its service."""

    @pytest.fixture
    def backend(self, on_podman: None) -> Iterator[DockerBackend]:
        """Return what trainlaunch itself takes here."""
        with contextlib.closing(docker_backend(print)) as backend:
            assert isinstance(backend, PodmanBackend)
            yield backend


@pytest.mark.docker
class TestPodmanWithoutProc(ShmContract):
    """Another user's Podman: /dev/shm is read by the health command inside the container."""

    @pytest.fixture
    def backend(self, on_podman: None, tmp_path: Path) -> Iterator[DockerBackend]:
        """Return a backend that sees no process of Podman's."""
        with contextlib.closing(PodmanBackend(Engine(find_endpoint()), proc=tmp_path / "no-proc")) as backend:
            yield backend


@pytest.mark.docker
@pytest.mark.usefixtures("on_podman")
class TestPodmanRuns(StoreContract):
    """What verbs do with runs on Podman."""

    @pytest.fixture
    def options(self) -> tuple[str, ...]:
        """Return what names the target."""
        return ("--target", "docker")
