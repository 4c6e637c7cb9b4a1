"""Workers that give no batch, by their own stacks, and what can't be pickled for them or by them."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import re
import signal
import time
import types
from collections.abc import Iterator
from typing import Any

from trainlaunch.inside.code_places import is_of_script, place
from trainlaunch.inside.probe.base import worker_results
from trainlaunch.inside.probe.base.dataset_objects import children
from trainlaunch.inside.probe.base.loader_facts import start_method
from trainlaunch.inside.probe.base.loader_stats import LoaderStats, noticed
from trainlaunch.inside.probe.base.sampling import samples
from trainlaunch.inside.probe.base.transfer import pickle_error
from trainlaunch.inside.probe.checks.handle_in_init import kind_of

MAX_WAIT_SECONDS = 15.0  # seconds without a batch that are no hang yet, nor is the time of many batches
SLOWER = 20  # times the median
ASKED = 4  # workers whose stack is asked for
_SIGNAL = signal.SIGRTMAX - 3  # scripts use SIGUSR1 and SIGUSR2
_ANSWER = 2.0  # seconds for a stack
_FRAME = re.compile(r'^  File "(?P<path>.+)", line (?P<line>\d+) in (?P<function>.+)', re.MULTILINE)
_stacks: list[int] = []  # the descriptor that stacks are written to
PARTS = ("dataset", "collate_fn", "worker_init_fn")
BATCH = 4  # samples of the batch that is tried
PICKLING_SECONDS = 3.0
DEPTH = 24


def notice_workers(seen: LoaderStats) -> bool:
    """Make this process, and the workers that it forks, write their stacks when asked to."""
    if seen.num_workers:
        listen()
    return bool(_stacks)


def listen() -> None:
    """Write this process's stacks when asked to, where a script's process waits for them; spawned workers do too."""
    path = os.environ.get(worker_results.VARIABLE)
    if path and not _stacks:
        _stacks.append(os.open(path + worker_results.STACKS, os.O_RDWR | os.O_APPEND))
        faulthandler.register(_SIGNAL, file=_stacks[0], all_threads=True)


def timed_out(seen: LoaderStats, problem: BaseException) -> None:
    """Note where the workers stand, while they are alive, where torch gave up to wait for them."""
    if "DataLoader timed out" in str(problem):
        seen.noticed["hang"] = _facts(seen, float(seen.timeout), _stacks_of(seen))


def worker_hang(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield the stacks of workers that the script waits for, or waited for until the loader's timeout."""
    if "hang" in seen.noticed:
        yield seen.noticed["hang"]
        return
    if seen.waiting_since is None or not seen.num_workers:
        return
    waited, usual = (
        time.monotonic() - seen.waiting_since,
        sorted(seen.waits)[len(seen.waits) // 2 : len(seen.waits) // 2 + 1],
    )
    if waited > max(MAX_WAIT_SECONDS, SLOWER * (usual[0] if usual else 0.0)):
        stacks = _stacks_of(seen)
        if not _only_start(seen, stacks):
            yield _facts(seen, waited, stacks)


def _stacks_of(seen: LoaderStats) -> dict[int, list[dict[str, Any]]]:
    """Return the stacks of the first workers by their numbers."""
    return {number: stack_of(pid) for pid, number in sorted(seen.pids.items(), key=lambda each: each[1])[:ASKED]}


def _only_start(seen: LoaderStats, stacks: dict[int, list[dict[str, Any]]]) -> bool:
    """Whether workers that aren't forked still import modules: slow, and no hang."""
    begun = [stack for stack in stacks.values() if stack and not any("importlib" in each["at"] for each in stack)]
    return start_method(seen) != "fork" and not seen.batches and not begun


def _facts(seen: LoaderStats, waited: float, stacks: dict[int, list[dict[str, Any]]]) -> dict[str, Any]:
    worker, stack = next(((number, each) for number, each in stacks.items() if each), (None, []))
    own = next((each for each in stack if each["own"]), stack[0] if stack else None)
    return {
        "waited": round(waited, 1),
        "batches": seen.batches,
        "worker": worker,
        "at": own["at"] if own else "",
        "function": own["function"] if own else "",
        "stack": [f"{each['at']} in {each['function']}" for each in stack[:12]],
        "num_workers": seen.num_workers,
        "start_method": start_method(seen),
        "threads": [each["name"] for each in noticed(seen, "threads") or ()][:8],
    }


def stack_of(pid: int) -> list[dict[str, Any]]:
    """Return the frames of a worker's main thread, the innermost first; none where it can't be had."""
    if not _stacks or not _listens(pid):
        return []
    begin, deadline, text = os.fstat(_stacks[0]).st_size, time.monotonic() + _ANSWER, ""
    os.kill(pid, _SIGNAL)
    while time.monotonic() < deadline:
        time.sleep(0.1)
        found = os.pread(_stacks[0], 65536, begin).decode(errors="replace")
        if found and found == text:
            break
        text = found
    thread = re.split(r"(?m)^(?=Current thread|Thread )", text)[-1]  # the main thread is written last
    return [
        {"at": place(each["path"], int(each["line"])), "function": each["function"], "own": is_of_script(each["path"])}
        for each in _FRAME.finditer(thread)
    ]


def _listens(pid: int) -> bool:
    """Whether a process is one of ours that takes the signal: without a handler it would die of it."""
    try:
        known = _status(pid)
        parent = int(known["PPid"])
        ours = os.getpid() in (parent, int(_status(parent)["PPid"]))  # a server of forks stands between
        return ours and bool(int(known["SigCgt"], 16) >> (int(_SIGNAL) - 1) & 1)
    except (OSError, KeyError, ValueError):
        return False


def _status(pid: int) -> dict[str, str]:
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return dict(line.split(":", 1) for line in file if ":" in line)


def unpicklable(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield each part that can't be pickled, with the path of the innermost object that can't."""
    # A finding of their own where they break anything, with the same way out.
    handles = tuple(each.held.path for each in noticed(seen, "handles") or ())
    for part in PARTS:
        with _without_iterator(seen.loader):
            found = culprit(getattr(seen, part), part, handles)
        if found is None or (not seen.num_workers and kind_of(found[1]) is not None):
            continue  # a handle that this process opened while it read samples: a worker opens its own
        # Made for fork, as its locks are by default: under another default they are made for that.
        if not (type(found[1]).__module__.startswith("multiprocessing.") and start_method(seen) == "fork"):
            yield _unpicklable_facts(seen, part, *found)


@contextlib.contextmanager
def _without_iterator(loader: Any) -> Iterator[None]:
    """Let a loader be as it is when its workers start, for a collate_fn that is a method of it."""
    kept = getattr(loader, "_iterator", None)
    if kept is not None:
        loader._iterator = None
    try:
        yield
    finally:
        if kept is not None:
            loader._iterator = kept


def unpicklable_batch(seen: LoaderStats) -> Iterator[dict[str, Any]]:
    """Yield what of a batch can't be sent to the script's process, under any start method."""
    found = [each.value for each in samples(seen, BATCH, PICKLING_SECONDS) if each.error is None]
    batched = seen.batch_sampler is not None or seen.batch_size
    if not found:
        return
    try:
        made = seen.collate_fn(found if batched else found[0])
    except Exception:  # a collate function that needs other samples than these
        return
    told = culprit(made, "batch")
    if told is not None:
        yield _unpicklable_facts(seen, "batch", *told)


def culprit(value: Any, path: str, known: tuple[str, ...] = ()) -> tuple[str, Any, Exception] | None:
    """Return path, object and error of the innermost thing that can't be pickled; None where all but `known` can."""
    error = pickle_error(value)
    if error is None:
        return None
    deadline = time.monotonic() + PICKLING_SECONDS
    for _ in range(DEPTH):
        inner = _failing_part(value, path, known, deadline)
        if inner is None:
            return None if any(each.startswith(path) for each in known) else (path, value, error)
        suffix, value, error = inner
        path += suffix
    return path, value, error


def _failing_part(value: Any, path: str, known: tuple[str, ...], deadline: float) -> tuple[str, Any, Exception] | None:
    for suffix, each in _parts(value):
        if time.monotonic() > deadline:
            return None
        error = pickle_error(each) if path + suffix not in known else None
        if error is not None:
            return suffix, each, error
    return None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what pickling an object would pickle of it: its state where it gives one, else what it holds."""
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        yield from children(value)
        return
    if isinstance(value, types.FunctionType):  # goes by its name
        return
    try:
        reduced = value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    except Exception:  # it is itself what can't be pickled
        return
    own = {id(each): suffix for suffix, each in children(value)}
    state = reduced[2] if isinstance(reduced, tuple) and len(reduced) > 2 else None
    states = state if isinstance(state, tuple) else (state,)
    named = [(f".{name}", each) for part in states if isinstance(part, dict) for name, each in part.items()]
    arguments = [(own.get(id(each), ""), each) for each in (reduced[1] if isinstance(reduced, tuple) else ())]
    yield from named
    yield from ((suffix, each) for suffix, each in arguments if suffix)
    yield from children(value) if not named else ()


def _unpicklable_facts(seen: LoaderStats, part: str, path: str, value: Any, error: Exception) -> dict[str, Any]:
    code = getattr(value, "__code__", None)
    return {
        "part": part,
        "path": path,
        "class": type(value).__name__,
        "name": getattr(value, "__qualname__", "") if callable(value) else "",
        "at": place(code.co_filename, code.co_firstlineno) if code is not None else "",
        "error": f"{type(error).__name__}: {error}"[:300],
        "num_workers": seen.num_workers,
        "start_method": start_method(seen),
    }
