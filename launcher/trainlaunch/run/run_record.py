"""What this host keeps of a run beside its target: the plan that its further attempts follow, and what was said of it.

    STATE/kept/RUN/plan    the plan, as this version of trainlaunch pickles it; it has no secret's value
    STATE/kept/RUN/job.yaml   of a run without a job file, the one that it would have had
    STATE/kept/RUN/waits   how long its loops waited for data, as JSON
    STATE/kept/RUN/notes   lines of JSON: what the run's supervisor said, and how each attempt ended, secrets taken out

The run itself is in the target: without this folder it is followed all the same, but its supervisor can't be replaced.
A plan's writer decides what a supervisor runs, so neither file is opened where another user, root included, owns it or
its folders, or where others may write to them.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from trainlaunch import __version__
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.backend import Peak
from trainlaunch.run.base.private_files import UnusableState, open_own, private_folder, refuse_open, state_root
from trainlaunch.run.base.run_evidence import EndNote
from trainlaunch.run.base.shm_reading import highest
from trainlaunch.run.base.wait_reading import DataWait, wait_from
from trainlaunch.run.run_lock import RUN_ID, keeper_of

FORGOTTEN_SECONDS = 30 * 24 * 3600.0
MAX_MESSAGES = 1_000
MAX_COUNTED = 10**18
_APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK  # never waits for a reader
_PARTS = re.compile(r"trainlaunch\.(?:diagnostics|job|plan|policy)\b")


class RunMessage(NamedTuple):
    """A line that was said of a run, and when, in seconds since the epoch."""

    at: float
    text: str

    def __str__(self) -> str:
        """Return it as a line, with the local time."""
        return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(self.at))} trainlaunch: {self.text}"


class RunRecord:
    """The folder of one run. What can't be written is left out: a full disk ends no run.

    `redact` takes secrets out of what is written.
    """

    def __init__(self, run: str, root: Path | None = None, redact: Callable[[str], str] = str) -> None:
        root = root or state_root().parent / "kept"
        self._folder = root / run if RUN_ID.fullmatch(run) else None  # a label may say anything
        self._redact = redact

    def keep(self, plan: LaunchPlan) -> None:
        """Write the plan, and remove folders of runs that are long forgotten."""
        if self._folder is None:
            return
        with contextlib.suppress(OSError, UnusableState):
            for each in (self._folder.parents[1], self._folder.parent, self._folder):
                private_folder(each)
            _forget_old(self._folder.parent)
            file = os.open(self._folder / "plan", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(file, "wb") as out:
                out.write(f"{__version__}\n".encode() + pickle.dumps(plan))

    def keep_text(self, text: str) -> None:
        """Write the job file of a run that was started without one, with what it measured; an older one is replaced."""
        self._write("job.yaml", self._redact(text), os.O_TRUNC)

    def keep_wait(self, attempt: int, node: int | None, wait: DataWait | None) -> None:
        """Write how long an attempt waited for data, where that was seen, after those before it."""
        if wait is not None:
            self._write("waits", json.dumps({"attempt": attempt, "node": node, **wait.document(0)}) + "\n")

    def data_wait(self, attempt: int, node: int | None) -> DataWait | None:
        """Return how long an attempt waited for data; None where nobody saw it to its end from this host."""
        with contextlib.suppress(UnusableState):
            for line in reversed(self._read("waits").decode(errors="replace").splitlines()):
                with contextlib.suppress(ValueError, RecursionError):
                    noted = json.loads(line)
                    if isinstance(noted, dict) and (noted.get("attempt"), noted.get("node")) == (attempt, node):
                        return wait_from(noted)
        return None

    def text(self) -> str:
        """Return that job file; empty where there is none. Raises UnusableState where it may be another's."""
        return self._read("job.yaml").decode(errors="replace")

    def plan(self) -> LaunchPlan | None:
        """Return the plan; None where there is none that this user wrote with this version."""
        with contextlib.suppress(UnusableState):
            return self.own_plan()
        return None

    def has_job(self) -> bool:
        """Return whether a job file may have started the run: not where its plan says that `run` did."""
        plan = self.plan()
        return plan is None or not plan.by_run

    def own_plan(self) -> LaunchPlan:
        """Return the plan. Raises UnusableState where there is none that this user wrote with this version."""
        version, _, data = self._read("plan").partition(b"\n")
        if not version:
            raise UnusableState("its plan is with the user and on the host that started it")
        if version != __version__.encode():
            raise UnusableState("its plan is of another version of trainlaunch")
        try:
            return plan_from(data)
        except pickle.UnpicklingError as other:
            raise UnusableState(f"its plan can't be read: {other}") from other

    def _read(self, name: str) -> bytes:
        """Return what a file holds, nothing where it is missing. Raises UnusableState where it may be another's."""
        if self._folder is None:
            return b""
        try:
            _refuse_others(self._folder)
            with os.fdopen(open_own(self._folder / name), "rb") as file:
                return file.read()
        except OSError:
            return b""

    def say(self, text: str) -> None:
        """Keep a line that was said."""
        self._append({"said": self._redact(text)})

    def end(self, attempt: int, note: EndNote) -> None:
        """Keep what was seen of an attempt's end."""
        self._append({"attempt": attempt, "end": note._replace(unhealthy=self._redact(note.unhealthy))._asdict()})

    def saw(self, attempt: int, node: int | None, peak: Peak | None) -> None:
        """Keep a peak of /dev/shm that was seen in one container of an attempt, where it is the highest so far."""
        if peak is not None and highest((peak, known := self.peak(attempt, node))) != known:
            self._append({"attempt": attempt, "node": node, "peak": peak._asdict()})

    def peak(self, attempt: int, node: int | None) -> Peak | None:
        """Return the highest peak that was kept; None where nobody saw one from this host."""
        own = (each.get("peak") for each in self._notes() if (each.get("attempt"), each.get("node")) == (attempt, node))
        return highest(_peak_from(each) for each in own)

    def said(self) -> tuple[RunMessage, ...]:
        """Return the lines that were said, oldest first."""
        notes = self._notes()
        return tuple(RunMessage(float(each["at"]), str(each["said"])) for each in notes if "said" in each)

    def ended(self, attempt: int) -> EndNote:
        """Return what was seen of an attempt's end; nothing where nobody followed it from this host."""
        for each in self._notes():
            if each.get("attempt") == attempt and isinstance(each.get("end"), dict):
                end = each["end"]
                peak = end.get("peak")
                known = isinstance(peak, int) and not isinstance(peak, bool)
                by = str(end.get("stopped_by")), str(end.get("killed_by"))
                spoke = end.get("preflight")
                spoke = spoke if isinstance(spoke, bool) else None
                return EndNote(*by, peak if known else None, spoke, str(end.get("unhealthy") or ""))
        return EndNote()

    def remove(self) -> None:
        """Remove the folder."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _append(self, note: dict[str, Any]) -> None:
        self._write("notes", json.dumps({"at": time.time(), **note}) + "\n")

    def _write(self, name: str, text: str, how: int = 0) -> None:
        """Append to a file, or with O_TRUNC replace it."""
        if self._folder is not None:
            with contextlib.suppress(OSError, UnusableState):
                _refuse_others(self._folder)
                file = os.open(self._folder / name, _APPENDING | how, 0o600)
                with os.fdopen(file, "w", encoding="utf-8") as out:
                    out.write(text)

    def _notes(self) -> Iterator[dict[str, Any]]:
        """Yield the notes that can be read, the last thousand of them."""
        lines: list[str] = []
        with contextlib.suppress(UnusableState):
            lines = self._read("notes").decode(errors="replace").splitlines()
        for line in lines[-MAX_MESSAGES:]:
            with contextlib.suppress(ValueError, RecursionError):
                note = json.loads(line)
                if isinstance(note, dict) and isinstance(note.get("at"), float):
                    yield note


def _refuse_others(folder: Path) -> None:
    """Raise UnusableState where others can write to the folder of a run or to one above it that is ours."""
    for each in (folder.parents[1].resolve(), folder.parent.resolve(), folder):  # a user may link the upper ones
        refuse_open(each)


def _peak_from(noted: Any) -> Peak | None:
    """Return a peak that was kept; None where it is none."""
    if not isinstance(noted, dict) or not _is_count(noted.get("held")):
        return None
    workers, largest = (noted[key] if _is_count(noted.get(key)) else None for key in ("workers", "largest"))
    return Peak(noted["held"], workers, largest or 0)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_COUNTED


class _Plans(pickle.Unpickler):
    """Reads a plan, and nothing that would do something: only trainlaunch's own tuples are made."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a named tuple of ours. Raises UnpicklingError for anything else."""
        ours = _PARTS.match(module) and "." not in name
        found = super().find_class(module, name) if ours else None
        if isinstance(found, type) and issubclass(found, tuple):
            return found
        raise pickle.UnpicklingError(f"{module}.{name} is not a part of a plan")


def plan_from(data: bytes) -> LaunchPlan:
    """Return a pickled plan. Raises UnpicklingError where it is none."""
    try:
        plan = _Plans(io.BytesIO(data)).load()
    except (AttributeError, EOFError, ImportError, IndexError, KeyError, TypeError, ValueError) as cause:
        raise pickle.UnpicklingError("it is not a plan") from cause
    if not isinstance(plan, LaunchPlan):
        raise pickle.UnpicklingError("it is not a plan")
    return plan


def _forget_old(root: Path) -> None:
    """Remove the folders of runs that nobody has kept for a month."""
    limit = time.time() - FORGOTTEN_SECONDS
    for each in root.iterdir() if root.is_dir() else ():
        if each.stat().st_mtime < limit and keeper_of(each.name) is None:
            shutil.rmtree(each, ignore_errors=True)
