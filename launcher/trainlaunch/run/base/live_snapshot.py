"""Looks at the processes of a running container, from this host where it may, else by a command inside.

Nothing is changed and no signal is sent: any but one that the job itself handles could end it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from trainlaunch.diagnose.base.live_facts import Look
from trainlaunch.run.base.backend import Started
from trainlaunch.run.base.live_text import read_look
from trainlaunch.templating.environment import constant_text

SECONDS = 90  # a look takes two, and up to ten for each stack of a process that doesn't let itself be read


def command(root: str = "/", pids: Iterable[int] = ()) -> list[str]:
    """Return the argv that prints a look, at `root`'s /dev/shm and cgroup; without pids at all around it."""
    return ["/bin/sh", "-c", constant_text("live.sh"), "sh", root, *map(str, pids)]


def look_here(root: str, pids: Iterable[int]) -> Look | None:
    """Look at processes of this host; None where it can't be done. `root` is / for the host's own files."""
    path = f"{os.environ.get('PATH', '')}:{Path(sys.executable).parent}"  # py-spy may be installed beside us
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            command(root, pids),
            env={"PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        return read_look(done.stdout.decode(errors="replace"))
    return None


def look_at(container: Started, proc: Path, execute: Callable[[list[str]], str]) -> Look | None:
    """Look at an engine's container through the host's /proc where we may, else by `execute`, a command inside."""
    pids = _host_pids(container, proc)
    if pids:
        return look_here(str(proc / str(container.pid) / "root"), pids)
    return read_look(execute(command()))


def _host_pids(container: Started, proc: Path) -> list[int]:
    """Return the pids of a container's processes on this host; none where they are not here, or not ours to see.

    The cgroup must name the container: on a remote engine, or one in a virtual machine, the pid is another process.
    """
    home = proc / str(container.pid)
    try:
        if not container.pid or container.id not in (home / "cgroup").read_text():
            return []
        os.statvfs(home / "root/dev/shm")
        return sorted(_pids_of(container.id, proc))
    except OSError:
        return []


def _pids_of(container: str, proc: Path) -> Iterator[int]:
    for each in proc.iterdir():
        if each.name.isdigit():
            with contextlib.suppress(OSError):  # it ended meanwhile
                if container in (each / "cgroup").read_text():
                    yield int(each.name)
