"""The folder of a local run: what was planned, who runs it, its output, how it ended. Any process may read it.

    run.json      what was planned, under which name, who created it
    started.json  the supervisor and the job's first process
    log, times    both streams in frames, as they came, and when
    signals       the numbers of the signals that were sent through trainlaunch, one a line
    peak, end     a page each, reserved at the start so that a full disk can't keep the end from being recorded

Files are replaced whole, or written by one call in place; a reader never waits. No secret is in any of them:
the supervisor takes their values out of the log.
Records have a checksum, and what is another user's or damaged is not used (`UnusableState`).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.base.backend import Peak
from trainlaunch.run.base.private_files import (
    UnusableState,
    open_own,
    private_folder,
    read_record,
    refuse_alien,
    refuse_open,
    replace_record,
    sealed,
)
from trainlaunch.run.local.processes import ProcessIdentity

PAGE = 4096
MAX_DIGITS = 9
REREAD_SECONDS = 0.01


class RunFolder:
    """One run's folder, STATE/runs/JOB/RUN-ATTEMPT; `id` is JOB/RUN-ATTEMPT."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path / "log"

    @property
    def id(self) -> str:
        """The id that names it among all runs."""
        return f"{self.path.parent.name}/{self.path.name}"

    def make(self, description: dict[str, Any]) -> None:
        """Make the folder, readable by its owner only; raises FileExistsError, other OSErrors and UnusableState."""
        private_folder(self.path.parent)
        self.path.mkdir()
        private_folder(self.path)
        for name, content in (("log", b""), ("peak", b" " * PAGE), ("end", b" " * PAGE)):
            file = self.path / name
            file.write_bytes(content)
            file.chmod(0o600)
        self.describe(description)

    def describe(self, description: dict[str, Any]) -> None:
        """Replace run.json."""
        replace_record(self.path / "run.json", description)

    def description(self) -> dict[str, Any] | None:
        """Return run.json, None where the folder is gone or half made. Raises UnusableState."""
        if self.path.exists():
            refuse_open(self.path)
        return read_record(self.path / "run.json")

    def start(self, keeper: ProcessIdentity, process: ProcessIdentity, started: float, overflow: int = -1) -> None:
        """Record who runs it, and the supervisor's descriptor of its overflow; raises OSError without the directory."""
        record = {"keeper": asdict(keeper), "process": asdict(process), "started": started, "overflow": overflow}
        replace_record(self.path / "started.json", record)

    def started(self) -> tuple[ProcessIdentity, ProcessIdentity, float] | None:
        """Return the supervisor, the job's first process and the time of its start. Raises UnusableState."""
        record = read_record(self.path / "started.json")
        if record is None:
            return None
        try:
            return ProcessIdentity(**record["keeper"]), ProcessIdentity(**record["process"]), float(record["started"])
        except (KeyError, TypeError, ValueError) as other:
            raise UnusableState("started.json is of another version of trainlaunch") from other

    def overflow(self) -> int:
        """Return the supervisor's descriptor for what the disk doesn't take, -1 where none is known."""
        with contextlib.suppress(UnusableState):
            found = (read_record(self.path / "started.json") or {}).get("overflow")
            return found if isinstance(found, int) else -1
        return -1

    def end(self, exit_code: int, finished: float) -> None:
        """Record the end in place."""
        self._fill("end", {"exit_code": exit_code, "finished": finished})

    def ended(self) -> tuple[int, float] | None:
        """Return exit code and time of the end, None before it. Raises UnusableState."""
        record = self._page("end")
        return None if record is None else (int(record["exit_code"]), float(record["finished"]))

    def note_peak(self, peak: Peak) -> None:
        """Record the most of /dev/shm that the run was seen to hold."""
        self._fill("peak", {"peak": peak.held, "workers": peak.workers, "largest": peak.largest})

    def peak(self) -> Peak:
        """Return the recorded peak, 0 bytes before the first. Raises UnusableState."""
        record = self._page("peak") or {"peak": 0}
        workers = record.get("workers")
        return Peak(int(record["peak"]), None if workers is None else int(workers), int(record.get("largest", 0)))

    def note_signal(self, number: int) -> None:
        """Append to the signals that were sent through us."""
        with (self.path / "signals").open("a") as file:
            file.write(f"{number}\n")

    def signals(self) -> tuple[int, ...]:
        """Return the signals that were sent through us, in order. Raises UnusableState."""
        try:
            file = open_own(self.path / "signals")
        except FileNotFoundError:
            return ()
        with os.fdopen(file, "rb") as opened:
            words = opened.read(PAGE).split()
        return tuple(int(each) for each in words if each.isdigit() and len(each) <= MAX_DIGITS)

    def _fill(self, name: str, record: dict[str, Any]) -> None:
        file = os.open(self.path / name, os.O_WRONLY)
        try:
            os.pwrite(file, sealed(record).ljust(PAGE), 0)
        finally:
            os.close(file)

    def _page(self, name: str) -> dict[str, Any] | None:
        """Return a record that is written in place, which may be read while it is half there."""
        try:
            return read_record(self.path / name)
        except UnusableState:
            time.sleep(REREAD_SECONDS)
            return read_record(self.path / name)


def refuse_alien_state(root: Path) -> None:
    """Raise TargetUnavailable (TL514) where the folder of all runs is another user's: nothing in it is acted on."""
    try:
        refuse_alien(root.parent)
        refuse_alien(root)
    except UnusableState as alien:
        raise TargetUnavailable([_not_used(root, str(alien))]) from alien


def make_root(root: Path) -> None:
    """Make the folder of all runs and the one above it, or close them to others. Raises OSError, TargetUnavailable."""
    try:
        private_folder(root.parent)
        private_folder(root)
    except UnusableState as alien:
        raise TargetUnavailable([_not_used(root, str(alien))]) from alien


def _not_used(root: Path, why: str) -> Diagnostic:
    return Diagnostic(
        code="TL514",
        message=f"the state of local runs in {root} is not used",
        why=why,
        fix="set XDG_STATE_HOME to a folder of your own; after a `sudo`, give it back by `sudo chown -R $(id -u)`",
    )


@contextlib.contextmanager
def state_is_writable(place: Path) -> Iterator[None]:
    """Turn an OSError inside into the error that names `place`, the folder of all runs. Raises TargetUnavailable."""
    try:
        yield
    except OSError as refused:
        raise TargetUnavailable(
            [
                Diagnostic(
                    code="TL514",
                    message=f"the state of a local run can't be written to {place}",
                    why=f"the system says: {refused.strerror or refused}",
                    fix="set XDG_STATE_HOME to a folder that you can write to",
                )
            ]
        ) from refused
