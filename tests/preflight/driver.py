"""Runs inside a container: starts each case of standard input and prints what came of all of them as one JSON list.

Many cases share a container, since starting one costs more than the case.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any


def main() -> None:
    """Read a list of cases, print a list of results in the same order."""
    print(json.dumps([run(case) for case in json.load(sys.stdin)]))


def run(case: dict[str, Any]) -> dict[str, Any]:
    """Start one case; keys: argv, env, user, cwd, setup (shell text run first as root), stdin, signals."""
    subprocess.run(["/bin/sh", "-c", case["setup"]], check=True)
    environment = {"PATH": os.environ["PATH"], "HOME": "/tmp", **case["env"]}
    started = subprocess.Popen(
        case["argv"],
        env=environment,
        cwd=case["cwd"],
        user=case["user"],
        extra_groups=[],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    for name in case["signals"]:
        wait_for("/tmp/ready")
        os.kill(started.pid, signal.Signals[name])
    out, err = started.communicate(case["stdin"].encode(), timeout=60)
    return {"code": started.returncode, "out": out.decode(), "err": err.decode()}


def wait_for(path: str) -> None:
    """Return when the job has made `path`, and remove it; raises after 30 seconds."""
    deadline = time.monotonic() + 30
    while not os.path.exists(path):  # noqa: PTH110  os alone is imported here
        if time.monotonic() > deadline:
            raise TimeoutError(path)
        time.sleep(0.02)
    os.remove(path)  # noqa: PTH107


if __name__ == "__main__":
    main()
