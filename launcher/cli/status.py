"""`trainlaunch status`: /dev/shm, health and workers of a job's newest run."""

from __future__ import annotations

import argparse
import time
from typing import Any

from launcher.cli.common import add_output_argument
from launcher.cli.ps import age, as_json
from launcher.cli.report import document
from launcher.cli.run_argument import add_run_argument, newest_run
from launcher.cli.streams import Streams, coloured
from launcher.run.backend import Backend, ShmReading, Started
from launcher.run.observe import read_from_health, suggestion
from launcher.units import human_size

EXAMPLES = ("trainlaunch status job.yaml", "trainlaunch status mnist --output json")
EXIT_CODES = (
    "0 it runs or ended well, 1 it is unhealthy, ended with another code than 0, or the job file is bad, 2 usage, "
    "3 no such run, engine or cluster, 70 a bug of ours, 130 interrupted"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_run_argument(parser)
    add_output_argument(parser)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Show the containers of the job's newest run."""
    from launcher.cli.kept_by import kept_by

    with newest_run(args, streams) as (backend, found):
        containers = found.newest
        seen = [_look(backend, each) for each in containers]
        whole = kept_by(backend, containers)
    if args.output == "json":
        documents = [_document(*each) for each in seen]
        nodes = documents[0] if len(documents) == 1 else {"nodes": documents}
        streams.result(document({**nodes, **whole.document()}))
    else:
        for container, reading, peak in seen:
            prefix = "" if len(seen) == 1 else f"[{container.node}] "
            for line in _lines(container, reading, peak):
                streams.show(f"{prefix}{line}\n")
        for line in whole.lines(colour=coloured(streams.out)):
            streams.result(f"{line}\n")
    return 1 if any(each.health == "unhealthy" or each.exit_code or each.error for each in containers) else 0


def _look(backend: Backend, container: Started) -> tuple[Started, ShmReading | None, int | None]:
    """Return a container with its /dev/shm now and the highest use that anyone saw."""
    reading = backend.read_shm(container) if container.status == "running" else None
    last = read_from_health(container.health_output)
    peak = max((each.peak for each in (reading, last) if each is not None), default=None)
    return container, reading, peak


def _document(container: Started, reading: ShmReading | None, peak: int | None) -> dict[str, Any]:
    planned = container.planned
    return {
        **as_json(container),
        "error": container.error or None,
        "oom_killed": container.oom_killed,
        "health_output": container.health_output or None,
        "shm": {
            "used": reading.used if reading else None,
            "peak": peak,
            "size": reading.size if reading else (container.shm_size if container.private_shm else None),
            "need": planned.need,
        },
        "workers": {"running": reading.workers if reading else None, "planned": planned.processes},
        "suggestion": _suggested(container, peak) or None,
    }


def _lines(container: Started, reading: ShmReading | None, peak: int | None) -> list[str]:
    attempts = f", attempt {container.attempt} of {container.max_attempts}" if container.max_attempts > 1 else ""
    lines = [
        f"job        {container.job} ({container.noun} {container.name}{attempts})",
        f"state      {_state(container)}",
        f"/dev/shm   {_shm(container, reading, peak)}",
    ]
    if reading is not None and reading.workers is not None:
        planned = container.planned.processes
        lines.append(f"workers    {reading.workers} running, {'unknown' if planned is None else planned} planned")
    suggested = _suggested(container, peak)
    return [*lines, *suggested.splitlines()] if suggested else lines


def _state(container: Started) -> str:
    health = f", {container.health}" if container.health else ""
    if container.status == "running":
        reason = container.health_output.removeprefix("unhealthy: ")
        said = f": {reason}" if container.health in {"unhealthy", "unchecked"} and reason else ""
        return f"running for {age(time.time() - container.started)}{health}{said}"
    if container.exit_code is None:
        if container.status == "exited":
            return f"ended: {container.error}"
        return f"never ran: {container.error}" if container.error else "created, not started yet"
    killed = ", OOMKilled" if container.oom_killed else ""
    ran = age(container.finished - container.started)
    return f"ended with exit code {container.exit_code} after {ran}{killed}"


def _shm(container: Started, reading: ShmReading | None, peak: int | None) -> str:
    local = not container.where.private_shm
    parts = [f"used {human_size(reading.used)}{' by all of the host' * local}"] if reading else []
    parts += [f"peak {human_size(peak)}{' of this run' * local}"] if peak is not None else []
    if reading is not None:
        parts.append(f"size {human_size(reading.size)}" if reading.size else "size unlimited")
    elif container.private_shm:
        parts.append(f"size {human_size(container.shm_size)}")
    if container.planned.unsized:
        parts.append("unsized")
    elif container.planned.need is not None:
        parts.append(f"the plan needs {human_size(container.planned.need)}")
    return ", ".join(parts)


def _suggested(container: Started, peak: int | None) -> str:
    return suggestion(container.planned, peak) if container.planned.unsized and peak is not None else ""
