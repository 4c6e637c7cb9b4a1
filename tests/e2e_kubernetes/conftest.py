"""A namespace of a real cluster, made once for all tests here; without a cluster they are skipped and say why."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubernetes.contract.user import Place, User
from tests.kubernetes.real import RESTART, real_place


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Return a namespace of the cluster, which enforces Pod Security `restricted`."""
    with real_place(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture
def user(place: Place, tmp_path: Path) -> Iterator[User]:
    """Return a user whose job has a name of its own; nothing of it is left."""
    found = User(place, tmp_path / "work", f"t-{uuid.uuid4().hex[:8]}")
    yield found
    found.leaves()


@pytest.fixture
def restart_api(place: Place) -> str:
    """Return the command that restarts the API server."""
    command = os.environ.get(RESTART, "")
    if not command:
        pytest.skip(f"{RESTART} not set: no way to restart the API server")
    return command
