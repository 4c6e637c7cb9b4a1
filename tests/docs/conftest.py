"""What the tests of pages share: the command that a page types."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """Return a folder with a `trainlaunch` that runs this checkout."""
    program = tmp_path / "trainlaunch"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}/launcher" exec "{sys.executable}" -m trainlaunch "$@"\n')
    program.chmod(0o755)
    return tmp_path
