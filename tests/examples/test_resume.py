"""The example that goes on where an attempt left off ends as if nothing had happened."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable

import pytest

from tests.conftest import Runs
from tests.examples.conftest import EXAMPLES

pytestmark = pytest.mark.docker
LONG_EPOCHS = 'command=[python, /workspace/train.py, --workers, "2", --batch-size, "2", --epochs, "3"]'


def lose_in_epoch_2(container: str) -> None:
    """Kill the container's processes past the engine, as a lost node or the kernel does, once epoch 1 is saved."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        log = subprocess.run(["docker", "logs", container], capture_output=True, text=True, check=False)
        if "epoch 1:" in log.stdout:
            break
        time.sleep(0.05)
    shown = subprocess.run(
        ["docker", "inspect", "--format", "{{.State.Pid}}", container], capture_output=True, text=True, check=True
    )
    os.kill(int(shown.stdout), signal.SIGKILL)


def test_a_lost_container_costs_an_epoch_and_no_accuracy(
    image_of: Callable[[str], str], trainlaunch: Runs, own_label: str
) -> None:
    """Losses and accuracy are those of an undisturbed run, to the last digit that is printed."""
    key, _, value = own_label.partition("=")
    name = f"resume-{value}"
    mounts = (
        "mounts=[{type: bind, source: ., target: /workspace, read_only: true}, "
        f"{{type: volume, source: {name}, target: /checkpoints}}]"
    )
    changed = (f"image={image_of('resume')}", f"name={name}", mounts, LONG_EPOCHS, f"labels={{{key}: {value}}}")
    line = ["up", "job.yaml", *(word for each in changed for word in ("--set", each))]
    try:
        undisturbed = trainlaunch(*line, cwd=EXAMPLES / "resume", timeout=900)
        assert undisturbed.returncode == 0, undisturbed.stderr
        assert trainlaunch("down", name).returncode == 0
        killer = threading.Thread(target=lose_in_epoch_2, args=(name,), daemon=True)
        killer.start()
        done = trainlaunch(*line, cwd=EXAMPLES / "resume", timeout=900)
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
    assert re.findall(results, done.stdout, re.MULTILINE) == re.findall(results, undisturbed.stdout, re.MULTILINE)
