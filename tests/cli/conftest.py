"""Fixtures of the command line's tests: shells that find this checkout's `trainlaunch`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """Return a folder with a `trainlaunch` that runs this checkout."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "trainlaunch"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}/launcher" exec "{sys.executable}" -m trainlaunch "$@"\n')
    program.chmod(0o755)
    return folder


@pytest.fixture
def run_sh(bin_folder: Path) -> Callable[[str, Path], str]:
    """Run shell text in a folder and return what it printed on both streams."""

    def run(text: str, folder: Path) -> str:
        environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "NO_COLOR": "1"}
        done = subprocess.run(
            ["sh", "-c", text],
            cwd=folder,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=60,
        )
        return done.stdout

    return run
