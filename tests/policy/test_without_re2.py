"""A trainlaunch without the extra `policy`: a pattern that can't be read is an error of every verb, never a pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import plain_yaml
from tests.conftest import ROOT
from tests.jobs import write_job

VERBS = (
    ("check", "."),
    ("plan", "job.yaml"),
    ("render", "job.yaml"),
    ("lint", "."),
    ("policy", "export", "."),
)
# Runs each verb in turn, in a Python that has no re2, and prints its exit code, stdout and stderr.
DRIVER = """
import contextlib, io, json, sys
sys.modules["re2"] = None
from trainlaunch.cli.main import main
ended = []
for argv in json.loads(sys.argv[1]):
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        try:
            code = main(argv)
        except SystemExit as exit:
            code = exit.code
    ended.append([code, *(each.buffer.getvalue().decode() for each in streams)])
print(json.dumps(ended))
"""


def ended(folder: Path, labels: Any) -> dict[str, tuple[int, str, str]]:
    """Return how each verb ends in a repository whose policy asks for `labels`: its exit code, stdout and stderr."""
    (folder / ".git").mkdir()
    (folder / "trainlaunch-policy.yaml").write_text(plain_yaml.dump({"required_labels": labels}))
    (folder / "train.sh").write_text("docker run --rm --shm-size=8g trainer:1 python train.py --num-workers 4\n")
    job = write_job(folder, labels={"team": "vision"})
    here = {**os.environ, "PYTHONPATH": str(ROOT / "launcher")}
    render = [sys.executable, "-m", "trainlaunch", "render", job.name, "--write-to", "out"]
    subprocess.run(render, cwd=folder, env=here, capture_output=True, check=True, timeout=60)
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, json.dumps(VERBS)],
        cwd=folder, env=here, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return {verb[0]: tuple(each) for verb, each in zip(VERBS, json.loads(done.stdout), strict=True)}


def test_a_pattern_is_an_error_that_names_its_place_and_the_extra(tmp_path: Path) -> None:
    """Each verb reads the policy, and none takes the pattern for fulfilled."""
    for verb, (code, out, err) in ended(tmp_path, {"team": "[a-z]+"}).items():
        assert code not in {0, 70}, (verb, err)
        assert "Traceback" not in out + err
        assert "trainlaunch-policy.yaml:2:9" in out + err, verb
        assert "pip install 'trainlaunch[policy]'" in out + err, verb


@pytest.mark.parametrize("labels", [["team"], {"team": ".+"}], ids=["names", "any-value"])
def test_a_policy_without_patterns_needs_nothing(tmp_path: Path, labels: Any) -> None:
    """A list of names is no list of patterns."""
    for verb, (code, _, err) in ended(tmp_path, labels).items():
        assert code == 0, (verb, err)
