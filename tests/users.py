"""Other users of this host: what tests about whose a run is act as. Only root can."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.runners import ROOT

SOMEBODY, ELSE = 65533, 65534
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as two users")
Done = subprocess.CompletedProcess[str]
PACKAGES = str(Path(yaml.__file__).parents[1])


def python_for(uid: int) -> str:
    """Return a Python of this version that a user may run, as one in root's own home is not; skips without one."""
    version = [str(each) for each in sys.version_info[:2]]
    for each in (sys.executable, "/usr/bin/python3"):
        said = as_user(uid, [each, "-c", "import sys, yaml; print(*sys.version_info[:2])"])
        if said is not None and said.stdout.split() == version:
            return each
    pytest.skip(f"uid {uid} may run no Python {'.'.join(version)} here")


def trainlaunch_as(uid: int, *words: str, groups: list[int] | None = None, **env: str) -> Done:
    """Run a verb of this checkout as another user, of `groups` too, with that user's variables and these."""
    done = as_user(uid, [python_for(uid), "-m", "trainlaunch", *words], groups=groups, **env)
    assert done is not None
    return done


def as_user(uid: int, argv: list[str], *, groups: list[int] | None = None, **env: str) -> Done | None:
    """Run a program as another user; None where that user may not run it."""
    known = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}/launcher:{PACKAGES}", "HOME": "/nonexistent", **env}
    try:
        return subprocess.run(
            argv,
            env={"PYTHONDONTWRITEBYTECODE": "1", **known},
            user=uid,
            group=uid,
            extra_groups=groups or [],
            cwd="/",
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
    except PermissionError:
        return None
