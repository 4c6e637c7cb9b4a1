"""The contract of runs on a cluster, on the fake one: in CI, without Docker and without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubernetes.contract.cases import ClusterRuns, EndContract, PendingContract, RoleContract, RunContract
from tests.kubernetes.contract.things import everything
from tests.kubernetes.contract.user import Place, User
from tests.kubernetes.role import documented_role
from tests.kubernetes.server import NAMESPACE, FakeCluster


@pytest.fixture
def place(fake: FakeCluster, kubeconfig: Path) -> Place:
    """Return the fake cluster as a place for jobs."""
    return Place(str(kubeconfig), NAMESPACE, "trainer:1", fake)


@pytest.fixture
def user(place: Place, tmp_path: Path) -> Iterator[User]:
    """Return a user whose job is called digits."""
    found = User(place, tmp_path / "work", "digits")
    yield found
    found.leaves()


@pytest.fixture
def others(place: Place) -> set[str]:
    """Return what was there before."""
    return everything(place)


@pytest.fixture
def no_pods(fake: FakeCluster) -> str:
    """Refuse all pods as a quota does, and return its words."""
    words = "exceeded quota: no-pods, requested: pods=1, used: pods=0, limited: pods=0"
    fake.refuse_pods(words)
    return words


class TestAsEveryTarget(ClusterRuns):
    """What verbs do with runs."""


class TestRuns(RunContract):
    """Following a job to its end."""


class TestEnds(EndContract):
    """Ends that a cluster makes."""


class TestPending(PendingContract):
    """Why nothing runs yet."""


class TestRole(RoleContract):
    """What the documented Role is enough for, on a server that allows exactly that."""

    @pytest.fixture(autouse=True)
    def granted(self, fake: FakeCluster) -> None:
        """Take everything else away."""
        fake.grant(documented_role())
