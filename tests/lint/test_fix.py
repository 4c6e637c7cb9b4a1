"""Safe fixes: in place, idempotent, and nothing else of the text changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainlaunch.lint.linter import fixed, lint_text

from tests.conftest import Runs
from tests.lint.texts import BOTH

COMPOSE = """\
# the team's stack
x-gpu: &gpu
  deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1, capabilities: [gpu]}]}}}
services:
  train:   # trains
    <<: *gpu
    image: 'pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime'  # pinned
    command: python train.py --num-workers 4

  db:
    image: postgres:16
"""
SCRIPT = """\
#!/bin/bash
set -eu
docker run \\
  --rm --gpus device=0,1 \\
  "$IMAGE" python train.py --num-workers 8  # é
podman run --shm_size=2g x:1 python train.py
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: t}
spec:
  containers:
    - name: train  # the one
      image: x:1
      command: [torchrun, train.py]
      resources: {limits: {nvidia.com/gpu: 1, memory: 3500m}}
      volumeMounts:
        - {name: data, mountPath: /data}
  volumes:
    - name: data
      emptyDir: {}
"""
JSON = """\
// mine
{
  // image
  "image": "pytorch/pytorch:1", /* pinned */
  "hostRequirements": {"gpu": true},
  "runArgs": [
    "--gpus",
    "all",
  ]
}
"""
WORKFLOW = """\
on: push
jobs:
  train:
    runs-on: ubuntu-latest
    container: pytorch/pytorch:1  # ours
    steps:
      - run: python train.py --num-workers 2
"""
TEXTS = {
    "compose.yaml": COMPOSE,
    "run.sh": SCRIPT,
    "pod.yaml": POD,
    "devcontainer.json": JSON,
    ".github/workflows/t.yml": WORKFLOW,
    "README.md": f"# Run\n\nIt's easy:\n\n```sh\n{SCRIPT}```\n",
    "Makefile": "train: build\n\t@docker run --gpus all '$(IMG)' torchrun train.py # it's\n",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_a_fixed_text_has_no_safe_fix_left_and_its_other_lines(name: str, line_break: str) -> None:
    """Comments, order and quotes stay: whatever line is gone has come back with something in it."""
    text = TEXTS[name].replace("\n", line_break)
    before = lint_text(text, name, None, BOTH)
    assert any(each.safe for each in before.findings)
    after = fixed(before, None, BOTH)
    assert [each.name for each in after.findings if each.safe] == []
    assert fixed(after, None, BOTH).text == after.text
    for comment in ("# the team's stack", "# trains", "# pinned", "# é", "# the one", "// mine", "# ours", "# it's"):
        assert (comment in text) == (comment in after.text)
    assert ("\r\n" in text) == ("\r\n" in after.text)
    assert not line_break.endswith("\r\n") or "\n" not in after.text.replace("\r\n", "")


def test_what_is_added_is_what_was_missing() -> None:
    """Whole texts after the fixes."""
    script = fixed(lint_text(SCRIPT, "run.sh")).text
    assert "docker run --shm-size=4g \\\n  --rm --gpus '\"device=0,1\"' \\\n" in script
    assert "podman run --shm-size=2g x:1" in script
    compose = fixed(lint_text(COMPOSE, "compose.yaml")).text
    assert compose == COMPOSE.replace("workers 4\n", 'workers 4\n    shm_size: "2gb"\n')
    assert '"runArgs": [\n    "--shm-size=2g", "--gpus",' in fixed(lint_text(JSON, "devcontainer.json")).text
    pod = fixed(lint_text(POD, "pod.yaml")).text
    assert "memory: 3500Mi" in pod
    assert pod.index("mountPath: /data") < pod.index('mountPath: "/dev/shm"') < pod.index("volumes:")


@pytest.mark.parametrize(
    ("cut", "joined"),
    [
        ("--gpus all\n  t:1 x\n", "--gpus all \\\n  t:1 x\n"),
        ("--gpus all \\ \n  t:1 x\n", "--gpus all \\\n  t:1 x\n"),
        ("--gpus all \\ # all\n  t:1 x\n", None),
        ("--gpus all \\\n  # -v a:/a \\\n  t:1 x\n", None),
    ],
)
def test_a_line_of_docker_is_joined_where_nothing_is_lost(cut: str, joined: str | None) -> None:
    """What stands in a comment is its author's to keep."""
    text = f"docker run --shm-size=2g {cut}"
    assert fixed(lint_text(text, "run.sh")).text == f"docker run --shm-size=2g {joined or cut}"


def test_an_anchor_that_others_share_is_not_changed() -> None:
    """What is reached by an alias would change elsewhere too: no edit, and the finding stays with its words."""
    text = "x-s: &s {image: 'pytorch:1', gpus: all, command: torchrun train.py}\nservices:\n  a: *s\n  b: *s\n"
    found = lint_text(text, "compose.yaml")
    assert [(each.name, each.safe) for each in found.findings] == [("shm-size-missing", False)] * 2
    assert fixed(found).text == text


def test_files_are_written_and_read_again(trainlaunch: Runs, tmp_path: Path) -> None:
    """--diff changes nothing and shows what --fix writes; afterwards nothing is left to fix."""
    script = tmp_path / "run.sh"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    shown = trainlaunch("lint", str(script), "--diff")
    assert shown.returncode == 1
    assert "+docker run --shm-size=4g \\" in shown.stdout
    assert script.read_text() == SCRIPT
    done = trainlaunch("lint", str(script), "--fix")
    assert (done.returncode, done.stdout) == (0, "")
    assert f"wrote {script}" in done.stderr
    assert script.read_text() == fixed(lint_text(SCRIPT, "run.sh")).text
    assert script.stat().st_mode & 0o777 == 0o755
    assert trainlaunch("lint", str(script)).returncode == 0
