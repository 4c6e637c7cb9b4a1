"""A closed terminal and `timeout` take no checkpoint of a run on Docker or through Compose."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from trainlaunch.run.compose.backend import ComposeBackend
from trainlaunch.run.docker.backend import DockerBackend

from tests.run.closing import ClosingContract, terminals

__all__ = ["terminals"]
pytestmark = pytest.mark.docker


class TestDocker(ClosingContract):
    """Containers of the Docker engine."""

    @pytest.fixture
    def backend(self, engine: str) -> Iterator[DockerBackend]:
        """Return a backend with a connection of its own."""
        with contextlib.closing(DockerBackend()) as backend:
            yield backend


class TestCompose(ClosingContract):
    """Containers that Compose makes."""

    @pytest.fixture
    def backend(self, compose: str) -> Iterator[ComposeBackend]:
        """Return a backend with a connection of its own."""
        with contextlib.closing(ComposeBackend()) as backend:
            yield backend

    @pytest.fixture
    def make_job(self, make_job: Callable[..., Path]) -> Callable[..., Path]:
        """Write jobs for target compose."""
        return lambda **over: make_job(**{"target": "compose", **over})
