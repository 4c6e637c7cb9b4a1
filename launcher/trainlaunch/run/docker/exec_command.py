"""Runs a command in a container for its output alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainlaunch.run.docker.client import Engine, EngineRefused


def execute(engine: Engine, container: str, command: list[str]) -> str:
    """Return what a command prints inside; empty where the container has ended, or has no such command."""
    try:
        with engine.attempting(f"run a command in container {container[:12]}") as client:
            made = client.exec_create(container, command)
            output: bytes = client.exec_start(made["Id"])
    except EngineRefused:
        return ""
    return output.decode(errors="replace")


def run_health_command(engine: Engine, container: str, inspected: Mapping[str, Any]) -> str:
    """Return what a container's own health command prints; empty where it has none, or doesn't run."""
    test = (inspected.get("Config", {}).get("Healthcheck") or {}).get("Test") or []
    if len(test) != 2 or test[0] != "CMD-SHELL" or not inspected["State"]["Running"]:
        return ""
    return execute(engine, container, ["/bin/sh", "-c", test[1]])
