"""Run a command and print, as one line of JSON, the most of /dev/shm that was in use meanwhile.

    python3 sample.py COMMAND [ARG ...]

It reads the file system's counters about once a millisecond from a process of its own: it takes no lock, allocates
nothing in /dev/shm and needs nothing but the standard library. The command's own output goes to stderr.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time

SHM = "/dev/shm"
INTERVAL = 0.001


def used() -> int:
    """Return the bytes of /dev/shm in use."""
    now = os.statvfs(SHM)
    return (now.f_blocks - now.f_bfree) * now.f_frsize


def main() -> None:
    """Sample while the command runs; exit 0 whatever its exit code was, which is in the JSON."""
    before = peak = used()
    samples = 0
    with subprocess.Popen(sys.argv[1:], stdout=sys.stderr) as command:
        while command.poll() is None:
            peak = max(peak, used())
            samples += 1
            time.sleep(INTERVAL)
    found = {
        "exit_code": command.returncode,
        "before": before,
        "peak": peak - before,
        "samples": samples,
        "page": os.sysconf("SC_PAGE_SIZE"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "torch": importlib.metadata.version("torch"),
        "cpus": len(os.sched_getaffinity(0)),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
