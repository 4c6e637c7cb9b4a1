"""The docker backend keeps the contract of all backends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from trainlaunch.run.docker.backend import DockerBackend

from tests.run.contract import BackendContract, ShmContract, UserContract
from tests.run.store_contract import StoreContract


@pytest.mark.docker
class TestDocker(UserContract, BackendContract):
    """Real containers on the engine that the docker command uses."""

    @pytest.fixture
    def backend(self, engine: str) -> Iterator[DockerBackend]:
        """Return a backend with a connection of its own."""
        with contextlib.closing(DockerBackend()) as backend:
            yield backend


@pytest.mark.docker
class TestDockerWithoutProc(ShmContract):
    """A remote engine, or another user's: /dev/shm is read by the health command inside the container."""

    @pytest.fixture
    def backend(self, engine: str, tmp_path: Path) -> Iterator[DockerBackend]:
        """Return a backend that sees no process of the engine's."""
        with contextlib.closing(DockerBackend(proc=tmp_path / "no-proc")) as backend:
            yield backend


@pytest.mark.docker
class TestDockerRuns(StoreContract):
    """What verbs do with runs on the engine."""

    @pytest.fixture
    def options(self) -> tuple[str, ...]:
        """Return what names the target."""
        return ("--target", "docker")
