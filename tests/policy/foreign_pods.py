"""Pods that nobody rendered, of `pods_repaired.yaml` and `pods_left.yaml`, each with what is expected of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests import plain_yaml

HERE = Path(__file__).parent


def _pods(file: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = plain_yaml.load((HERE / file).read_text())
    for name, each in found.items():
        metadata = {"name": "pod", "namespace": "training", **each.get("metadata", {})}
        if each.get("long"):
            each["spec"]["containers"][0]["command"].append("# " + "x" * 8_000)
        each["pod"] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {key: value for key, value in metadata.items() if value is not None},
            "spec": each["spec"],
        }
        each["name"] = name
    return found


REPAIRED = _pods("pods_repaired.yaml")
LEFT = _pods("pods_left.yaml")
