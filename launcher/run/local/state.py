"""The folder of a local run: what was planned, who runs it, its output, how it ended. Any process may read it.

    run.json      what was planned, under which name, who created it
    started.json  the keeper and the job's first process
    log           both streams in frames, as they came
    signals       the numbers of the signals that were sent through trainlaunch, one a line
    peak, end     a page each, reserved at the start so that a full disk can't keep the end from being recorded

Files are replaced whole, or written by one call in place; a reader never waits. No secret is in any of them.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from launcher.diagnostics import Diagnostic, Explanation
from launcher.errors import TargetUnavailable
from launcher.run.local.processes import Identity

TL514 = Explanation(
    "TL514",
    "state-not-writable",
    "The state of a local run can't be written.",
    """\
**Why**: a run on a host keeps its log and how it ended in `$XDG_STATE_HOME/trainlaunch`, or without
that variable in `~/.local/state/trainlaunch`; the folder is read-only, full or another user's.

**Example**:

```sh
XDG_STATE_HOME=/dev/null trainlaunch up job.yaml --target local
```

**Write instead**:

```text
XDG_STATE_HOME=/scratch/$USER trainlaunch up job.yaml --target local
```
""",
)
PAGE = 4096


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
        """Make the folder, readable by its owner only; raises FileExistsError and other OSErrors."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.mkdir(mode=0o700)
        self.log.touch()
        for name in ("peak", "end"):
            (self.path / name).write_bytes(b" " * PAGE)
        self.describe(description)

    def describe(self, description: dict[str, Any]) -> None:
        """Replace run.json."""
        replace_file(self.path / "run.json", description)

    def description(self) -> dict[str, Any] | None:
        """Return run.json, None where the folder is gone or half made."""
        return self._json("run.json")

    def start(self, keeper: Identity, process: Identity, started: float) -> None:
        """Record who runs it; raises OSError where the folder is gone."""
        record = {"keeper": asdict(keeper), "process": asdict(process), "started": started}
        replace_file(self.path / "started.json", record)

    def started(self) -> tuple[Identity, Identity, float] | None:
        """Return the keeper, the job's first process and the time of its start."""
        record = self._json("started.json")
        if record is None:
            return None
        return Identity(**record["keeper"]), Identity(**record["process"]), float(record["started"])

    def end(self, exit_code: int, finished: float) -> None:
        """Record the end in place."""
        self._fill("end", {"exit_code": exit_code, "finished": finished})

    def ended(self) -> tuple[int, float] | None:
        """Return exit code and time of the end, None before it."""
        record = self._json("end")
        return None if record is None else (int(record["exit_code"]), float(record["finished"]))

    def note_peak(self, peak: int) -> None:
        """Record the most bytes of /dev/shm that the run was seen to hold."""
        self._fill("peak", {"peak": peak})

    def peak(self) -> int:
        """Return the recorded peak in bytes, 0 before the first."""
        return int((self._json("peak") or {"peak": 0})["peak"])

    def note_signal(self, number: int) -> None:
        """Append to the signals that were sent through us."""
        with (self.path / "signals").open("a") as file:
            file.write(f"{number}\n")

    def signals(self) -> tuple[int, ...]:
        """Return the signals that were sent through us, in order."""
        try:
            return tuple(int(each) for each in (self.path / "signals").read_text().split())
        except FileNotFoundError:
            return ()

    def _fill(self, name: str, record: dict[str, Any]) -> None:
        file = os.open(self.path / name, os.O_WRONLY)
        try:
            os.pwrite(file, json.dumps(record).encode().ljust(PAGE), 0)
        finally:
            os.close(file)

    def _json(self, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads((self.path / name).read_bytes())
        except (OSError, ValueError):
            return None
        return found


def replace_file(path: Path, record: dict[str, Any]) -> None:
    """Write a JSON file whole, then put it in place."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(json.dumps(record), encoding="utf-8")
    fresh.replace(path)


@contextlib.contextmanager
def state_is_writable(place: Path) -> Iterator[None]:
    """Turn an OSError inside into the error that names `place`, the folder of all runs. Raises TargetUnavailable."""
    try:
        yield
    except OSError as refused:
        raise TargetUnavailable(
            [
                Diagnostic(
                    code=TL514.code,
                    message=f"the state of a local run can't be written to {place}",
                    why=f"the system says: {refused.strerror or refused}",
                    fix="set XDG_STATE_HOME to a folder that you can write to",
                )
            ]
        ) from refused
