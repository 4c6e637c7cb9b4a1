"""A detached run on Podman has a keeper, and every verb gives the same causes."""

from __future__ import annotations

import pytest

from tests.run.keeper_contract import KeeperContract

pytestmark = pytest.mark.docker


class TestPodman(KeeperContract):
    """Containers of a rootful Podman, through its service."""
