"""The contract of runs on a cluster, on a real one: skipped unless the environment names it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubernetes.contract.cases import ClusterRuns, EndContract, PendingContract, RunContract
from tests.kubernetes.contract.things import allow_pods, everything, forbid_pods
from tests.kubernetes.contract.user import Place, User
from tests.kubernetes.real import real_place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Return a namespace of a real cluster as a place for jobs."""
    with real_place(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture
def user(place: Place, tmp_path: Path) -> Iterator[User]:
    """Return a user whose job has a name of its own; nothing of it is left."""
    found = User(place, tmp_path / "work", f"t-{uuid.uuid4().hex[:8]}")
    yield found
    found.leaves()


@pytest.fixture
def others(place: Place) -> set[str]:
    """Return what was there before."""
    return everything(place)


@pytest.fixture
def no_pods(place: Place) -> Iterator[str]:
    """Make a quota that allows no pod, and return what the cluster says about it."""
    forbid_pods(place)
    yield "exceeded quota: no-pods"
    allow_pods(place)


class TestAsEveryTarget(ClusterRuns):
    """What verbs do with runs."""


class TestRuns(RunContract):
    """Following a job to its end."""


class TestEnds(EndContract):
    """Ends that a cluster makes."""


class TestPending(PendingContract):
    """Why nothing runs yet."""
