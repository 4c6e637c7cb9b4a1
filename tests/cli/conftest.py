"""Fixtures of the command line's tests: a shell finds this checkout's `trainlaunch`."""

from __future__ import annotations

import sys
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
