"""The stacks that py-spy prints of Python processes, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from trainlaunch.diagnose.base.tracebacks import Frame

FRAMES = 64


def read_stacks(dumps: dict[int, str]) -> tuple[dict[int, tuple[Frame, ...]], str]:
    """Return the main threads' stacks by pid, and py-spy's reason where it gave none."""
    found: dict[int, tuple[Frame, ...]] = {}
    refused = ""
    for pid, dump in dumps.items():
        try:
            threads = json.loads(dump)
        except ValueError:
            refused = next((each for each in dump.splitlines() if each.strip()), "it printed nothing")
            continue
        main = next((each for each in _mappings(threads) if each.get("os_thread_id") in {pid, None}), None)
        main = main or next((each for each in _mappings(threads) if each.get("thread_name") == "MainThread"), None)
        found[pid] = tuple(_frames(main.get("frames") or ())) if main else ()
    return {pid: stack for pid, stack in found.items() if stack}, f"py-spy: {refused}" if refused else ""


def _frames(frames: Iterable[Any]) -> Iterator[Frame]:
    for each in _mappings(list(frames)[:FRAMES]):
        name = str(each.get("name", "")).rpartition(".")[2]  # newer ones say in which class, older ones don't
        yield Frame(str(each.get("filename", "")), int(each.get("line") or 0), name)


def _mappings(values: Any) -> list[dict[str, Any]]:
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []
