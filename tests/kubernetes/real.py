"""A real cluster, where the environment names one: a namespace of our own that enforces Pod Security `restricted`.

TRAINLAUNCH_E2E_KUBECONFIG   its kubeconfig
TRAINLAUNCH_E2E_IMAGE        an image that its nodes have, with python3 and (for training) torch
TRAINLAUNCH_E2E_RESTART_API  a command that restarts its API server, for the case about that
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import plain_yaml
from tests.kubernetes.contract.things import ask, talking
from tests.kubernetes.contract.user import Place

KUBECONFIG, IMAGE, RESTART = (f"TRAINLAUNCH_E2E_{each}" for each in ("KUBECONFIG", "IMAGE", "RESTART_API"))


@contextlib.contextmanager
def real_place(folder: Path) -> Iterator[Place]:
    """Make a namespace on the cluster of the environment, and delete it afterwards; skip where none is named."""
    missing = [each for each in (KUBECONFIG, IMAGE) if not os.environ.get(each)]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not set: no real cluster to try this on")
    namespace = f"trainlaunch-e2e-{uuid.uuid4().hex[:8]}"
    place = Place(_own_context(folder, namespace), namespace, os.environ[IMAGE])
    labels = {f"pod-security.kubernetes.io/{each}": "restricted" for each in ("enforce", "warn", "audit")}
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}
    with talking(place) as api:
        ask(api, "POST", "/api/v1/namespaces", made)
    try:
        yield place
    finally:
        with talking(place) as api:
            ask(api, "DELETE", f"/api/v1/namespaces/{namespace}")


def _own_context(folder: Path, namespace: str) -> str:
    """Return a KUBECONFIG whose first file adds a context for our namespace to the given one."""
    given = Path(os.environ[KUBECONFIG]).absolute()
    config = plain_yaml.load(given.read_text())
    context = next(each["context"] for each in config["contexts"] if each["name"] == config["current-context"])
    ours = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": namespace,
        "contexts": [{"name": namespace, "context": {**context, "namespace": namespace}}],
        "clusters": [],
        "users": [],
    }
    path = folder / "kubeconfig"
    path.write_text(plain_yaml.dump(ours))
    return f"{path}{os.pathsep}{given}"
