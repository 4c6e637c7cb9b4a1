"""Reads the engine's own description of a container into a Started."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

from launcher.job.reserved import LABEL_PREFIX
from launcher.plan.planned import Planned
from launcher.run.backend import Started

COMPOSE_PROJECT = "com.docker.compose.project"  # every Compose puts it on all that it makes
_RUNNING = frozenset({"running", "paused", "restarting", "removing", "stopping"})
_FRACTION = re.compile(r"\.(\d{6})\d*")


def started_from(inspected: Mapping[str, Any]) -> Started:
    """Return what `docker inspect` says about a container of ours."""
    state, host = inspected["State"], inspected["HostConfig"]
    labels = inspected["Config"].get("Labels") or {}
    status = state["Status"]
    never_ran = status == "created"
    health = state.get("Health") or {}
    results = [each for each in health.get("Log") or () if status in _RUNNING or _came_to_a_result(each)] or [{}]
    return Started(
        id=inspected["Id"],
        name=inspected["Name"].lstrip("/"),
        job=labels.get(LABEL_PREFIX + "job", ""),
        run=labels.get(LABEL_PREFIX + "run", ""),
        attempt=_number(labels, "attempt") or 1,
        max_attempts=_number(labels, "max-attempts") or 1,
        status="created" if never_ran else "running" if status in _RUNNING else "exited",
        exit_code=None if never_ran or status in _RUNNING else state["ExitCode"],
        error=state.get("Error") or "",
        oom_killed=bool(state.get("OOMKilled")),
        # The engine calls each ended container unhealthy, since nobody checks it any more.
        health=health.get("Status", "") if status in _RUNNING else "",
        health_output=str(results[-1].get("Output", "")).strip(),
        created=seconds(inspected["Created"]),
        started=seconds(state["StartedAt"]),
        finished=seconds(state["FinishedAt"]),
        ipc_mode=host.get("IpcMode") or "",
        shm_size=host.get("ShmSize") or 0,
        memory=host.get("Memory") or 0,
        pid=state.get("Pid") or 0,
        planned=_planned(labels),
        ttl=_number(labels, "ttl-after-finished"),
        target="compose" if COMPOSE_PROJECT in labels else "docker",
        node=_number(labels, "node"),
        project=labels.get(COMPOSE_PROJECT, ""),
    )


def seconds(timestamp: str) -> float:
    """Return the engine's RFC 3339 time as seconds since the epoch; its year 1 means never and gives 0."""
    text = _FRACTION.sub(r".\1", timestamp.replace("Z", "+00:00"))
    whole, dot, rest = text.partition(".")
    if dot:  # Python 3.10 reads three or six digits of a second only
        digits = re.match(r"\d+", rest)
        fraction = digits.group() if digits else ""
        text = f"{whole}.{fraction.ljust(6, '0')}{rest[len(fraction) :]}"
    moment = datetime.datetime.fromisoformat(text)
    return moment.timestamp() if moment.year > 1 else 0.0


def _planned(labels: Mapping[str, str]) -> Planned:
    return Planned(
        processes=_number(labels, "planned-processes"),
        queued_batches=_number(labels, "queued-batches"),
        need=_number(labels, "shm-need"),
        size=_number(labels, "shm-size"),
        unsized=labels.get(LABEL_PREFIX + "unsized") == "true",
    )


def _number(labels: Mapping[str, str], key: str) -> int | None:
    text = labels.get(LABEL_PREFIX + key, "")
    return int(text) if text.isascii() and text.isdigit() else None


def _came_to_a_result(check: Mapping[str, Any]) -> bool:
    """Whether a health check said something; the last one often ends with the container, in words of the runtime."""
    return check.get("ExitCode") in (0, 1)
