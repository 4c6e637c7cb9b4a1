"""A detached run on Podman has a keeper, and every verb gives the same causes."""

from __future__ import annotations

import pytest

from tests.run.keeper_contract import KeeperBasics, KeeperContract

pytestmark = pytest.mark.docker


class TestPodman(KeeperBasics):
    """Containers of a rootful Podman, through its service."""


@pytest.mark.long
class TestPodmanWholly(KeeperContract):
    """All of it, which by default is shown of Docker's containers alone."""
