"""Workers give no batch: where each of them stands, from its own stack."""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import time
from collections.abc import Iterator
from typing import Any

from trainlaunch.inside.code_places import is_of_script, place
from trainlaunch.inside.probe.base import results
from trainlaunch.inside.probe.base.loader_facts import start_method
from trainlaunch.inside.probe.base.loader_stats import Seen
from trainlaunch.inside.probe.base.noticing import noticed

LONGEST = 15.0  # seconds without a batch that are no hang yet, nor is the time of many batches
SLOWER = 20  # times the median
ASKED = 4  # workers whose stack is asked for
_SIGNAL = signal.SIGRTMAX - 3  # scripts use SIGUSR1 and SIGUSR2
_ANSWER = 2.0  # seconds for a stack
_FRAME = re.compile(r'^  File "(?P<path>.+)", line (?P<line>\d+) in (?P<function>.+)', re.MULTILINE)
_stacks: list[int] = []  # the descriptor that stacks are written to


def notice(seen: Seen) -> bool:
    """Make this process, and the workers that it forks, write their stacks when asked to."""
    if seen.num_workers:
        listen()
    return bool(_stacks)


def listen() -> None:
    """Write this process's stacks when asked to, where a script's process waits for them; spawned workers do too."""
    path = os.environ.get(results.VARIABLE)
    if path and not _stacks:
        _stacks.append(os.open(path + results.STACKS, os.O_RDWR | os.O_APPEND))
        faulthandler.register(_SIGNAL, file=_stacks[0], all_threads=True)


def timed_out(seen: Seen, problem: BaseException) -> None:
    """Note where the workers stand, while they are alive, where torch gave up to wait for them."""
    if "DataLoader timed out" in str(problem):
        seen.noticed["hang"] = _facts(seen, float(seen.timeout), _stacks_of(seen))


def check(seen: Seen) -> Iterator[dict[str, Any]]:
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
    if waited > max(LONGEST, SLOWER * (usual[0] if usual else 0.0)):
        stacks = _stacks_of(seen)
        if not _only_start(seen, stacks):
            yield _facts(seen, waited, stacks)


def _stacks_of(seen: Seen) -> dict[int, list[dict[str, Any]]]:
    """Return the stacks of the first workers by their numbers."""
    return {number: stack_of(pid) for pid, number in sorted(seen.pids.items(), key=lambda each: each[1])[:ASKED]}


def _only_start(seen: Seen, stacks: dict[int, list[dict[str, Any]]]) -> bool:
    """Whether workers that aren't forked still import modules: slow, and no hang."""
    begun = [stack for stack in stacks.values() if stack and not any("importlib" in each["at"] for each in stack)]
    return start_method(seen) != "fork" and not seen.batches and not begun


def _facts(seen: Seen, waited: float, stacks: dict[int, list[dict[str, Any]]]) -> dict[str, Any]:
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
        "threads": [each["name"] for each in noticed(seen, "threads_before_fork") or ()][:8],
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
