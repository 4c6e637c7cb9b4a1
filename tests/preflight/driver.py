"""Runs inside a container: starts the cases of each line of standard input and answers with what came of them.

The cases of a line see what those before them left; after a line the container is as a fresh one again.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pristine import Container, end_processes

ENDS_WITHIN = 60.0  # seconds; it is killed then


def main() -> None:
    """Answer lists of cases with their results, in the same order: `once`, or as many as come."""
    if sys.argv[1:] == ["once"]:
        print(json.dumps([run(case) for case in json.load(sys.stdin)]))
        return
    container = Container()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        ended = [run(case) for case in json.loads(line)]
        print(json.dumps({"ended": ended, "differs": container.restore()[1]}), flush=True)


def run(case: dict[str, Any]) -> dict[str, Any]:
    """Start one case, whose other processes end with its first; keys: argv, env, user, cwd, stdin, signals, and setup.

    `setup` is shell text that root runs before.
    """
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
    ended = os.pidfd_open(started.pid)
    with ThreadPoolExecutor() as pool:
        told = pool.submit(started.communicate, case["stdin"].encode())
        select.select([ended], (), (), ENDS_WITHIN)
        end_processes()
        out, err = told.result()
    os.close(ended)
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
