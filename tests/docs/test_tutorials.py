"""A tutorial's ```sh blocks are run in turn, and each ```text block was printed by the one above it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.test_console_blocks import ROOT

TUTORIAL = ROOT / "docs" / "fix-a-bus-error.md"
FENCE = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def without_numbers(text: str) -> str:
    """Return a text whose numbers are those of no machine."""
    return re.sub(r"\d+", "0", text)


@pytest.mark.docker
def test_the_tutorial_does_what_it_says(bin_folder: Path, tmp_path: Path, torch_image: str) -> None:
    """From the crash to the run; the image that it builds from a registry is ours instead."""
    env = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "NO_COLOR": "1", "COLUMNS": "100"}
    folder, said, printed = tmp_path, "", []
    for kind, body in FENCE.findall(TUTORIAL.read_text(encoding="utf-8")):
        if kind == "text":
            printed += [(line, said) for line in body.splitlines()]
            continue
        block = f"docker tag {torch_image} bus-error:1" if body.startswith("docker build") else body
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block],
            cwd=folder,
            env=env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0 or "doctor" in body, f"{body}\n{done.stdout}"
        said, folder = done.stdout, tmp_path / "bus-error"
    assert len(printed) >= 6
    assert [line for line, text in printed if without_numbers(line) not in without_numbers(text)] == []
