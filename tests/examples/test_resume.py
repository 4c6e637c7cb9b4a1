"""The example that goes on where an attempt left off ends as if nothing had happened."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Runs
from tests.examples.conftest import EXAMPLES, Trained, settings_of

pytestmark = pytest.mark.docker
LOST = Path(__file__).parent / "lost"


def lose_after_epoch_1(container: str) -> None:
    """Kill the container's processes past the engine, as a lost node or the kernel does, once epoch 1 is saved."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        log = subprocess.run(["docker", "logs", container], capture_output=True, text=True, check=False)
        if "saved its first checkpoint" in log.stdout:
            break
        time.sleep(0.2)
    shown = subprocess.run(
        ["docker", "inspect", "--format", "{{.State.Pid}}", container], capture_output=True, text=True, check=True
    )
    os.kill(int(shown.stdout), signal.SIGKILL)


def test_a_lost_container_costs_no_finished_epoch_and_no_accuracy(
    image_of: Callable[[str], str], trained: Callable[[str], Trained], trainlaunch: Runs, own_label: str
) -> None:
    """Losses and accuracy are those of the run that nothing disturbed, to the last digit that is printed."""
    key, _, value = own_label.partition("=")
    name = f"resume-{value}-lost"
    mounts = [
        {"type": "bind", "source": ".", "target": "/workspace", "read_only": True},
        {"type": "bind", "source": str(LOST), "target": "/lost", "read_only": True},
        {"type": "volume", "source": name, "target": "/checkpoints"},
    ]
    own = {"name": name, f"labels.{key}": value, "mounts": json.dumps(mounts), "env.PYTHONPATH": "/lost"}
    changed = settings_of("resume", image=image_of("resume"), **own)
    killer = threading.Thread(target=lose_after_epoch_1, args=(name,), daemon=True)
    killer.start()
    try:
        done = trainlaunch("up", "job.yaml", *changed, cwd=EXAMPLES / "resume", timeout=900)
        killer.join(10)
    finally:
        trainlaunch("down", name, "--all")
        subprocess.run(["docker", "volume", "rm", name], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "attempt 1 of 3 ended with exit code 137" in done.stderr
    assert re.findall(r"^attempt .*$", done.stdout, re.MULTILINE) == [
        "attempt 1: begins",
        "attempt 2: goes on after epoch 1",
    ]
    results = r"^(?:epoch|test accuracy).*$"
    undisturbed = trained("resume").out
    assert re.findall(results, done.stdout, re.MULTILINE) == re.findall(results, undisturbed, re.MULTILINE)
