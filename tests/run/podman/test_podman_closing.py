"""A closed terminal and `timeout` take no checkpoint of a run on Podman."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from trainlaunch.run.backends import docker_backend
from trainlaunch.run.docker.backend import DockerBackend

from tests.run.closing import ClosingContract, terminals

__all__ = ["terminals"]
pytestmark = pytest.mark.docker


class TestPodman(ClosingContract):
    """Containers of a rootful Podman, through its service."""

    @pytest.fixture
    def backend(self, on_podman: None) -> Iterator[DockerBackend]:
        """Return what trainlaunch itself takes here."""
        with contextlib.closing(docker_backend(print)) as backend:
            yield backend
