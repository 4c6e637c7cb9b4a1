"""Starts the process that keeps a local run, which starts the job."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from trainlaunch.run.local.process_spec import ProcessSpec
from trainlaunch.run.local.state import RunFolder

_PACKAGE = Path(__file__).resolve().parents[3]
# Isolated: neither the current folder nor PYTHONPATH may put another module in the place of the standard library's.
_OWN = "import sys; sys.path.insert(0, sys.argv[1]); import trainlaunch; del sys.path[0]; "
_KEEPER = f"{_OWN}from trainlaunch.run.local.keeper import main; main(sys.argv[2])"


def start_keeper(folder: RunFolder, spec: ProcessSpec) -> str:
    """Start the keeper, and the job by it; return what kept either from starting, empty where both run."""
    try:
        keeper = subprocess.run(
            [sys.executable, "-I", "-c", _KEEPER, str(_PACKAGE), str(folder.path)],
            input=json.dumps(asdict(spec)).encode(),
            capture_output=True,
            start_new_session=True,
            check=False,
        )
    except OSError as refused:
        return str(refused)
    problem = (keeper.stdout + keeper.stderr).decode(errors="replace").strip()
    return problem or (f"its keeper ended with {keeper.returncode}" if keeper.returncode else "")
