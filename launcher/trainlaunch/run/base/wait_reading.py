"""Reads how long the loops of a run waited for data, from the page that its processes note it in, and says it.

The page is gone with its container or its run. Whoever follows the run holds it open, and so reads the end in it.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from trainlaunch.errors import LaunchError
from trainlaunch.plan.instrumentation import DATA_WAIT
from trainlaunch.units import age

PAGE = f"trainlaunch_inside/{DATA_WAIT}"  # below the folder of the job's parts
FOLDER = "/dev/shm/.trainlaunch"  # that folder in a container
PHASES = {1: "training", 2: "evaluation", 3: "another thread"}
ASIDE = PHASES[3]
SAID_FROM = 0.1  # a share from which something is to be done
_NS = 1e9
_LOOK = f"base64 {FOLDER}/{PAGE} && cd /proc && echo && echo [0-9]* && (date +%s || :) 2>/dev/null"


class LoaderWait(NamedTuple):
    """What one process waited at one line that iterates, in seconds; `first` is within `waited`.

    `phase` is what it does with the batches; in `another thread` the waits are that thread's, not the training's.
    `begun` and `latest` are seconds since the epoch.
    """

    rank: int
    process: int
    phase: str
    at: str
    batches: int
    waited: float
    first: float
    begun: float
    latest: float


class DataWait(NamedTuple):
    """What a run waited for data; without loaders none was iterated. Not `whole`: some had no room in the page.

    `at` is when it was read, in seconds since the epoch by the clock that its processes have; 0: unknown.
    """

    loaders: tuple[LoaderWait, ...] = ()
    whole: bool = True
    at: float = 0.0

    @property
    def ranks(self) -> dict[int, float]:
        """Return the seconds that each rank waited; of processes of a rank at the same time those of the longest."""
        return {rank: max(map(_waited, _lives(self._of(rank)))) for rank in sorted({each.rank for each in self._own})}

    @property
    def longest(self) -> tuple[LoaderWait, ...]:
        """Return the waits of the rank that waited longest, which the others wait for."""
        waited = self.ranks
        if not waited:
            return ()
        rank = max(waited, key=lambda each: waited[each])
        return max(_lives(self._of(rank)), key=_waited)

    @property
    def waited(self) -> float:
        """Return the seconds of that rank."""
        return _waited(self.longest)

    @property
    def _own(self) -> tuple[LoaderWait, ...]:
        return tuple(each for each in self.loaders if each.phase != ASIDE)

    def _of(self, rank: int) -> list[LoaderWait]:
        return [each for each in self._own if each.rank == rank]

    def document(self, seconds: float) -> dict[str, Any]:
        """Return it as plain values, with its share of so many seconds of the run."""
        share = round(min(1.0, self.waited / seconds), 4) if seconds > 0 else None
        loaders = [each._asdict() for each in self.loaders]
        return {"waited": self.waited, "share": share, "whole": self.whole, "loaders": loaders}


def _waited(loaders: Iterable[LoaderWait]) -> float:
    return sum(each.waited for each in loaders)


def _lives(loaders: list[LoaderWait]) -> list[tuple[LoaderWait, ...]]:
    """Return the waits of processes that followed each other, as restarted ones do; those at one time apart."""
    processes: dict[int, list[LoaderWait]] = {}
    for each in loaders:
        processes.setdefault(each.process, []).append(each)
    lives: list[tuple[LoaderWait, ...]] = []
    for own in sorted(processes.values(), key=lambda each: min(one.begun for one in each)):
        before = [each for each in lives if max(one.latest for one in each) <= min(one.begun for one in own)]
        if before:
            lives[lives.index(before[0])] = (*before[0], *own)
        else:
            lives.append(tuple(own))
    return lives


def read_page(data: bytes, now: float, is_alive: Callable[[int], bool]) -> DataWait | None:
    """Return what a page says at a time of day; None where it is none, or the noting ended by an error.

    A wait that goes on counts where its process `is_alive`.
    """
    from trainlaunch.inside import batch_waits as sums
    from trainlaunch.inside import data_wait as page

    if len(data) < page.RECORD * page.RECORDS:
        return None
    found = []
    for at in range(0, page.RECORD * page.RECORDS, page.RECORD):
        numbers = struct.unpack_from(f"={sums.SINCE + 1}q", data, at)
        if not numbers[page.PID]:
            break
        if numbers[page.PHASE] not in PHASES:
            return None
        text = data[at + page.PLACE : at + page.RECORD].rstrip(b"\0").decode(errors="replace")
        waited, since = numbers[sums.WAITED] / _NS, numbers[sums.SINCE] / _NS
        goes_on = since > 0 and is_alive(numbers[page.PID])
        found.append(
            LoaderWait(
                rank=numbers[page.RANK],
                process=numbers[page.PID],
                phase=PHASES[numbers[page.PHASE]],
                at=text,
                batches=numbers[sums.BATCHES],
                waited=waited + max(0.0, now - since) * goes_on,
                first=numbers[page.FIRST] / _NS,
                begun=numbers[page.BEGUN] / _NS,
                latest=max(numbers[page.LATEST] / _NS, abs(since), now * goes_on),
            )
        )
    used = [each for each in found if each.batches or each.waited > 0]
    return DataWait(tuple(used), len(found) < page.RECORDS, now)


class WaitPage(Protocol):
    """The page of a running container, held."""

    def read(self) -> DataWait | None:
        """Return what it says now, also after the end; None where that is not to be read."""

    def close(self) -> None:
        """Let go of it."""


class OpenPage:
    """A page of this host, and the folder of /proc in which its processes stand."""

    def __init__(self, path: Path, proc: Path) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        self._proc = proc

    def read(self) -> DataWait | None:
        """Return what it says; its file outlives its name."""
        data = os.pread(self._file, 1 << 16, 0)
        return read_page(data, time.time(), lambda pid: (self._proc / str(pid)).exists())

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def open_page(folder: Path, proc: Path) -> OpenPage | None:
    """Return the page below the folder of a run's parts; None where there is none, or we may not read it."""
    with contextlib.suppress(OSError):
        return OpenPage(folder / PAGE, proc)
    return None


class AskedPage:
    """A page that only a command inside the container can read; after its end there is no more."""

    def __init__(self, execute: Callable[[list[str]], str]) -> None:
        self._execute = execute

    def read(self) -> DataWait | None:
        """Run the command, which tells its own time: this host's clock may be another. Without it no wait goes on."""
        text, _, told = self._execute(["/bin/sh", "-c", _LOOK]).partition("\n\n")
        pids, _, now = told.partition("\n")
        with contextlib.suppress(binascii.Error, ValueError):
            return read_page(base64.b64decode(text), float(now or 0), {*map(int, pids.split())}.__contains__)
        return None

    def close(self) -> None:
        """Nothing is open."""


class PageSource(Protocol):
    """What opens the page of a running container."""

    def wait_page(self, container: Any) -> WaitPage | None:
        """Open it; None where there is none yet."""


class HeldPage:
    """The page of one container from when there is one, and `seen`, what was last read of it."""

    def __init__(self, source: PageSource) -> None:
        self._source = source
        self._page: WaitPage | None = None
        self.seen: DataWait | None = None

    def look(self, container: Any) -> None:
        """Read it while the container runs."""
        self._page = self._page or self._source.wait_page(container)
        if self._page is not None:
            self.seen = self._page.read() or self.seen

    def end(self) -> None:
        """Read it after the end, and let go of it."""
        if self._page is not None:
            with contextlib.suppress(LaunchError):  # an engine that is away
                self.seen = _last(self.seen, self._page.read())
            self._page.close()


def _last(newest: DataWait | None, now: DataWait | None) -> DataWait | None:
    """Return what is known after the end: a wait that its process died in lasted as long as it was last seen to."""
    if newest is None or now is None:
        return now or newest
    before = {(each.process, each.phase, each.at, each.batches): each for each in newest.loaders}
    loaders = []
    for each in now.loaders:
        old = before.get((each.process, each.phase, each.at, each.batches), each)
        longest = max(each.waited, old.waited)
        loaders.append(each._replace(waited=longest, latest=max(each.latest, old.latest)))
    return now._replace(loaders=tuple(loaders))


def of_nodes(waits: Iterable[DataWait | None]) -> DataWait | None:
    """Return what all nodes of a run waited; None where it was seen of none."""
    known = [each for each in waits if each is not None]
    loaders = tuple(one for each in known for one in each.loaders)
    return DataWait(loaders, all(each.whole for each in known)) if known else None


def wait_from(noted: Any) -> DataWait | None:
    """Return what `DataWait.document` made; None where it is something else."""
    with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):
        loaders = tuple(LoaderWait(**each) for each in noted["loaders"])
        if all(isinstance(each.waited + each.first + each.begun + each.latest, float) for each in loaders):
            return DataWait(loaders, bool(noted["whole"]))
    return None


def waited_words(wait: DataWait, seconds: float) -> str:
    """Return what a run of so many seconds waited, as a clause; empty where no loop over a loader was seen."""
    if not wait.loaders or not wait.ranks or seconds <= 0:
        return ""
    parts = ", ".join(_parts(wait.longest, seconds))
    first = sum(each.first for each in wait.longest)
    least = "" if wait.whole else "at least "
    text = f"waited for data {least}{_time(wait.waited)}, {_share(wait.waited, seconds)}{_of_ranks(wait, seconds)}"
    text += f": {parts}" if parts else ""
    return text + (f"; first batches {_time(first)} of it" if first >= SAID_FROM else "")


def _of_ranks(wait: DataWait, seconds: float) -> str:
    """Return which rank that is, with the one that waited least."""
    waited = wait.ranks
    if len(waited) < 2:
        return ""
    least = min(waited, key=lambda each: waited[each])
    return f" (rank {wait.longest[0].rank}; rank {least} {_share(waited[least], seconds)})"


def _parts(loaders: Iterable[LoaderWait], seconds: float) -> Iterator[str]:
    """Yield each phase with its share, and the lines of it where there are several; nothing of a single line."""
    sums: dict[tuple[str, str], float] = {}
    for each in loaders:
        sums[each.phase, each.at] = sums.get((each.phase, each.at), 0.0) + each.waited
    if len(sums) < 2:
        return
    for phase in PHASES.values():
        places = {at: waited for (of, at), waited in sums.items() if of == phase}
        if len(places) == 1:
            yield f"{phase} {_share(sum(places.values()), seconds)}"
        for at, waited in places.items() if len(places) > 1 else ():
            yield f"{phase} at {at} {_share(waited, seconds)}"


def _share(waited: float, seconds: float) -> str:
    return f"{min(100.0, 100 * waited / seconds):.0f} %"


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s" if seconds < 60 else age(seconds)
