"""What a follower keeps of the attempt that it follows."""

from __future__ import annotations

from typing import NamedTuple

from launcher.run.watch import Log, ShmWatch


class Watched(NamedTuple):
    """What is kept of one container while it is followed."""

    log: Log
    shm: ShmWatch


class Attempt(NamedTuple):
    """One attempt of a run; `watched` has its containers by node, under None where there is one."""

    container: str
    run: str
    number: int
    watched: dict[int | None, Watched]
