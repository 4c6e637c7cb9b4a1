"""`trainlaunch ps`: the runs on this engine."""

from __future__ import annotations

import argparse
import time

from launcher.cli.common import CONTRACT_EXIT_CODES, add_output_argument
from launcher.cli.place import names_a_place, refuse_place_elsewhere
from launcher.cli.report import document
from launcher.cli.runs import ENGINES, add_run_target_argument, backend_of
from launcher.cli.streams import Streams
from launcher.cli.table import age, table
from launcher.errors import TargetUnavailable
from launcher.run.backend import Started
from launcher.units import format_size

EXAMPLES = ("trainlaunch ps", "trainlaunch ps --output json")
EXIT_CODES = CONTRACT_EXIT_CODES
COLUMNS = ("JOB", "CONTAINER", "RUN", "ATTEMPT", "STATE", "EXIT", "AGE", "SHM", "TARGET")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_output_argument(parser)
    add_run_target_argument(parser, "docker and local; clusters only when named")


def run(args: argparse.Namespace, streams: Streams) -> int:
    """List every run of this host, and every container that carries our labels, newest first."""
    target = args.target or ("kubernetes" if names_a_place(args) else None)
    refuse_place_elsewhere(args, target or "docker")
    if target == "kubernetes":
        from launcher.cli import cluster_status

        return cluster_status.ps(args, streams)
    found = _runs(target, streams)
    if args.output == "json":
        streams.result(document({"runs": [as_json(each) for each in found]}))
        return 0
    if not found:
        streams.say("there are no runs of trainlaunch")
        return 0
    for line in table([COLUMNS, *(_row(each, time.time()) for each in found)]):
        streams.result(line + "\n")
    return 0


def _runs(target: str | None, streams: Streams) -> list[Started]:
    """Return the runs of one target or of all, newest first; without an engine those of this host, if there are any."""
    found: list[Started] = []
    for each in reversed((target,) if target else ENGINES):
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
