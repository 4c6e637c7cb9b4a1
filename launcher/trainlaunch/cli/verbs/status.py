"""`trainlaunch status`: /dev/shm, health and workers of a job's newest run."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from trainlaunch.cli.arguments.job_arguments import add_output_argument
from trainlaunch.cli.arguments.run_argument import add_run_argument, newest_run
from trainlaunch.cli.output.report import document
from trainlaunch.cli.output.streams import Streams
from trainlaunch.cli.output.text_style import style_of
from trainlaunch.cli.verbs.ps import age, as_json
from trainlaunch.run.base.backend import Backend, ContainerInfo, Peak, ShmReading
from trainlaunch.run.base.shm_peak import highest, measured_line
from trainlaunch.units import human_size

EXAMPLES = ("trainlaunch status job.yaml", "trainlaunch status mnist --output json")
FACTS = 11  # columns before what a line of `status` says
EXIT_CODES = (
    "0 it runs or ended well, 1 it is unhealthy, ended with another code than 0, or the job file is bad, 2 usage, "
    "3 no such run, engine or cluster, 70 a bug of ours, 130 interrupted"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    add_run_argument(parser)
    add_output_argument(parser)


class _Seen(NamedTuple):
    """A container, its /dev/shm now (None: it can't be read), and the highest peak that anyone saw."""

    container: ContainerInfo
    reading: ShmReading | None
    peak: Peak | None


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Show the containers of the job's newest run."""
    from trainlaunch.cli.runs.kept_by import kept_by
    from trainlaunch.cli.runs.run_end import is_silent

    with newest_run(args, streams) as (backend, found):
        containers = found.newest
        seen = [_look(backend, each) for each in containers]
        whole = kept_by(backend, containers)
        silent = is_silent(backend, containers)
    to_paste = _measured(seen)
    if args.output == "json":
        documents = [{**_document(each), "suggestion": to_paste or None} for each in seen]
        nodes = documents[0] if len(documents) == 1 else {"nodes": documents}
        streams.result(document({**nodes, "never_ran": silent, **whole.document()}))
    else:
        for each in seen:
            prefix = "" if len(seen) == 1 else f"[{each.container.node}] "
            for line in _lines(each):
                streams.row(f"{prefix}{line}", len(prefix) + FACTS)
        if silent:
            streams.row(f"preflight  {_never_spoke()}", FACTS)
        for line in to_paste.splitlines():
            streams.show(f"{line}\n")
        for line in whole.lines(style_of(streams.out)):
            streams.row(line, FACTS)
    bad = any(each.health == "unhealthy" or each.exit_code or each.error for each in containers)
    return int(bad or silent)


def _never_spoke() -> str:
    from trainlaunch.run.base.preflight_line import NEVER_SPOKE

    return NEVER_SPOKE


def _look(backend: Backend, container: ContainerInfo) -> _Seen:
    from trainlaunch.cli.runs.run_end import peak_of_container

    reading = backend.read_shm(container) if container.status == "running" else None
    return _Seen(container, reading, peak_of_container(container, reading))


def _measured(seen: Sequence[_Seen]) -> str:
    """Return what an unsized run is to be given, by the highest peak of all its nodes."""
    first = seen[0].container
    code = max(each.container.exit_code or 0 for each in seen) if all(each.container.ended for each in seen) else None
    peak = highest(each.peak for each in seen)
    return measured_line(first.planned, peak, size=first.own_shm, exit_code=code)


def _document(seen: _Seen) -> dict[str, Any]:
    container, reading, peak = seen
    planned = container.planned
    return {
        **as_json(container),
        "error": container.error or None,
        "oom_killed": container.oom_killed,
        "health_output": container.health_output or None,
        "shm": {
            "used": reading.used if reading else None,
            "peak": peak.held if peak else None,
            "size": reading.size if reading else (container.own_shm if container.private_shm else None),
            "need": planned.need,
        },
        "workers": {"running": reading.workers if reading else None, "planned": planned.processes},
    }


def _lines(seen: _Seen) -> list[str]:
    container, reading, _ = seen
    attempts = f", attempt {container.attempt} of {container.max_attempts}" if container.max_attempts > 1 else ""
    lines = [
        f"job        {container.job} ({container.noun} {container.name}{attempts})",
        f"state      {_state(container)}",
        f"/dev/shm   {_shm(seen)}",
    ]
    if reading is not None and reading.workers is not None:
        planned = container.planned.processes
        lines.append(f"workers    {reading.workers} running, {'unknown' if planned is None else planned} planned")
    return lines


def _state(container: ContainerInfo) -> str:
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


def _shm(seen: _Seen) -> str:
    container, reading, peak = seen
    local = not container.where.private_shm
    parts = [f"used {human_size(reading.used)}{' by all of the host' * local}"] if reading else []
    parts += [f"peak {human_size(peak.held)}{' of this run' * local}"] if peak is not None else []
    if reading is not None:
        parts.append(f"size {human_size(reading.size)}" if reading.size else "size unlimited")
    elif container.private_shm:
        parts.append(f"size {human_size(container.shm_size)}")
    if container.planned.unsized:
        parts.append("unsized")
    elif container.planned.need is not None:
        parts.append(f"the plan needs {human_size(container.planned.need)}")
    return ", ".join(parts)
