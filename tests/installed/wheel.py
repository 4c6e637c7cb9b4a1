"""This checkout's wheel, built and installed."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def install_wheel(folder: Path) -> Path:
    """Return the Python of a new virtual environment in `folder`, with the wheel and the packages of this Python."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, capture_output=True, timeout=60, check=True)
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    # A folder that is named in a .pth file is no site folder: the editable installation that it may have isn't found.
    (site_of(folder / "venv") / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, *map(str, folder.glob("*.whl"))], capture_output=True, timeout=60, check=True)
    return python


def site_of(environment: Path) -> Path:
    """Return the folder of a virtual environment's packages."""
    return Path(sysconfig.get_path("purelib", vars={"base": str(environment), "platbase": str(environment)}))
