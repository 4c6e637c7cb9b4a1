"""`trainlaunch ps`: the runs on this engine."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from launcher.cli.common import CONTRACT_EXIT_CODES, add_output_argument
from launcher.cli.report import document
from launcher.cli.runs import RUN_TARGETS, add_run_target_argument, backend_of
from launcher.cli.streams import Streams
from launcher.errors import TargetUnavailable
from launcher.run.backend import Started
from launcher.units import format_size

EXAMPLES = ("trainlaunch ps", "trainlaunch ps --output json")
EXIT_CODES = CONTRACT_EXIT_CODES
COLUMNS = ("JOB", "CONTAINER", "RUN", "ATTEMPT", "STATE", "EXIT", "AGE", "SHM", "TARGET")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_output_argument(parser)
    add_run_target_argument(parser, "all but clusters")


def run(args: argparse.Namespace, streams: Streams) -> int:
    """List every run of this host, and every container that carries our labels, newest first."""
    found = _runs(args.target, streams)
    if args.output == "json":
        streams.result(document({"runs": [as_json(each) for each in found]}))
        return 0
    if not found:
        streams.say("there are no runs of trainlaunch")
        return 0
    streams.result(table([COLUMNS, *(_row(each, time.time()) for each in found)]))
    return 0


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """Return rows as lines whose columns stand below each other."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(line.rstrip() + "\n" for line in lines)


def _runs(target: str | None, streams: Streams) -> list[Started]:
    """Return the runs of one target or of all, newest first; without an engine those of this host, if there are any."""
    found: list[Started] = []
    for each in reversed((target,) if target else RUN_TARGETS):
        try:
            with backend_of(each) as backend:
                found += backend.runs()
        except TargetUnavailable as unreachable:
            if not found:
                raise
            streams.say(f"trainlaunch: only local runs are listed: {unreachable}")
    return sorted(found, key=lambda run: run.created, reverse=True)


def as_json(container: Started) -> dict[str, object]:
    """Return one run as plain values: bytes, seconds since the epoch, null where there is none yet."""
    return {
        "job": container.job,
        "target": container.target,
        "container": container.name,
        "node": container.node,
        "id": container.id,
        "run": container.run or None,
        "attempt": container.attempt,
        "max_attempts": container.max_attempts,
        "state": container.status,
        "exit_code": container.exit_code,
        "health": container.health or None,
        "created": container.created,
        "started": container.started or None,
        "finished": container.finished or None,
        "shm_size": container.shm_size if container.private_shm else None,
    }


def _row(container: Started, now: float) -> tuple[str, ...]:
    return (
        container.job,
        container.name,
        container.run or "-",
        f"{container.attempt}/{container.max_attempts}",
        container.status,
        "-" if container.exit_code is None else str(container.exit_code),
        age(now - container.created),
        format_size(container.shm_size) if container.private_shm else container.ipc_mode,
        container.target,
    )


def age(seconds: float) -> str:
    """Return a time span in its one or two largest units: `42s`, `3m12s`, `2h5m`, `4d3h`."""
    total = max(0, int(seconds))
    minutes, secs = divmod(total, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours}h"
    if hours:
        return f"{hours}h{minutes}m"
    return f"{minutes}m{secs}s" if minutes else f"{secs}s"
