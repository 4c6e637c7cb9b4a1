"""Records for `trainlaunch`, as marked text on standard error: `up` and its kin take it out of what the user sees.

Each line is one write that a pipe takes whole, so that records of several ranks don't mix.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import time
from typing import Any

from trainlaunch.inside.process import rank

MAX_LINE_BYTES = 3900  # bytes; a pipe takes 4,096 as one
START, END = "\x1etrainlaunch ", "\x1f\n"
_CHUNK = MAX_LINE_BYTES - 80  # what stands around a chunk is shorter
_PATIENCE = 30.0  # seconds that a full pipe may take

_descriptor = os.dup(2)  # the script may close or redirect its own
_process = os.urandom(4).hex()  # pids of several containers may be equal
_numbers = itertools.count()


def emit(kind: str, facts: dict[str, Any]) -> None:
    """Write a record of that kind; what JSON doesn't know is written as its text. An unreadable pipe loses it."""
    record = {"kind": kind, "rank": rank(), "pid": os.getpid()}
    record.update(facts)
    text = json.dumps(record, default=str)
    chunks = [text[at : at + _CHUNK] for at in range(0, len(text), _CHUNK)]
    name = f"{_process}-{os.getpid()}-{next(_numbers)}"
    for index, chunk in enumerate(chunks, start=1):
        _write(f"{START}{name} {index}/{len(chunks)} {chunk}{END}".encode("ascii"))


def _write(line: bytes) -> None:
    deadline = time.monotonic() + _PATIENCE
    while line and time.monotonic() < deadline:
        try:
            line = line[os.write(_descriptor, line) :]
        except BlockingIOError:
            select.select([], [_descriptor], [], 1.0)
        except OSError:
            return
