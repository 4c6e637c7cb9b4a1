"""Reads the kernel's own log for what an engine didn't note."""

from __future__ import annotations

import os
from pathlib import Path

KMSG = Path("/dev/kmsg")
RECORD_BYTES = 8192  # no record of the kernel is longer


def killed_for_memory(container: str, kmsg: Path = KMSG) -> bool:
    """Whether the kernel killed a process at the memory limit of the cgroup that carries this container's id.

    False also where the log can't be read: it is root's, and of this host since its start.
    """
    limit = container.encode()
    try:
        log = os.open(kmsg, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        while record := _record(log):
            # Both words: `oom_memcg` names the cgroup whose limit was met, a host without memory left names none.
            if b"CONSTRAINT_MEMCG" in record and limit in record.partition(b"oom_memcg=")[2]:
                return True
    finally:
        os.close(log)
    return False


def _record(log: int) -> bytes:
    """Return the next record, nothing at the end."""
    while True:
        try:
            return os.read(log, RECORD_BYTES)
        except BrokenPipeError:
            continue  # the kernel wrote over it meanwhile: the next read goes on with what there is
        except OSError:
            return b""
