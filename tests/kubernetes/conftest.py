"""A cluster per test, and the official client on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.contract.user import Place, User
from tests.kubernetes.server import NAMESPACE, FakeCluster


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    """Return a cluster that serves; a script that raises fails the test at its end."""
    with FakeCluster() as cluster:
        yield cluster


@pytest.fixture
def kubeconfig(fake: FakeCluster, tmp_path: Path) -> Path:
    """Return the kubeconfig of the cluster."""
    return fake.kubeconfig(tmp_path / "kubeconfig")


@pytest.fixture
def client(kubeconfig: Path) -> Iterator[Any]:
    """Return the official client's ApiClient for it."""
    from kubernetes import config

    api = config.new_client_from_config(str(kubeconfig))
    yield api
    api.rest_client.pool_manager.clear()


@pytest.fixture
def user(fake: FakeCluster, kubeconfig: Path, tmp_path: Path) -> Iterator[User]:
    """Return a user of the fake cluster whose job is called digits."""
    found = User(Place(str(kubeconfig), NAMESPACE, "trainer:1", fake), tmp_path / "work", "digits")
    yield found
    found.leaves()
