"""A detached run of this host has a keeper, and every verb gives the same causes."""

from __future__ import annotations

from tests.run.keeper_contract import KeeperContract


class TestLocal(KeeperContract):
    """Processes of this host."""
