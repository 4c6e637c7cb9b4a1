"""The docker backend keeps the contract of all backends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from launcher.run.docker import DockerBackend
from tests.run.contract import BackendContract


@pytest.mark.docker
class TestDocker(BackendContract):
    """Real containers on the engine that the docker command uses."""

    @pytest.fixture
    def backend(self, engine: str) -> Iterator[DockerBackend]:
        """Return a backend with a connection of its own."""
        with contextlib.closing(DockerBackend()) as backend:
            yield backend
