"""The documented Role on a real API server: a ServiceAccount that has it and nothing else."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubernetes.contract.cases import RoleContract
from tests.kubernetes.contract.user import Place, User
from tests.kubernetes.role import with_role_alone


@pytest.fixture
def user(place: Place, tmp_path: Path) -> Iterator[User]:
    """Return a user of the documented Role whose job has a name of its own."""
    found = User(with_role_alone(place, tmp_path), tmp_path / "work", f"t-{uuid.uuid4().hex[:8]}")
    yield found
    found.leaves()


class TestRole(RoleContract):
    """What it is enough for."""
