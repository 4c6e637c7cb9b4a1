"""A detached run on Docker or through Compose has a keeper, and every verb gives the same causes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.run.keeper_contract import KeeperBasics, KeeperContract

pytestmark = pytest.mark.docker


class TestDocker(KeeperContract):
    """Containers of the Docker engine."""


class TestCompose(KeeperBasics):
    """Containers that Compose makes."""

    @pytest.fixture
    def make_job(self, make_job: Callable[..., Path], compose: str) -> Callable[..., Path]:
        """Write jobs for target compose."""
        return lambda **over: make_job(**{"target": "compose", **over})


@pytest.mark.long
class TestComposeWholly(KeeperContract):
    """All of it, which by default is shown of Docker's containers alone."""

    make_job = TestCompose.make_job
