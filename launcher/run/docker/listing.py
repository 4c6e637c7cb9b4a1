"""What an engine tells of all containers in one list: enough to choose a run, and for a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from launcher.job.reserved import LABEL_PREFIX
from launcher.plan.planned import whole_number
from launcher.run.docker.client import Engine
from launcher.run.timestamps import SECOND, rfc3339

SHM = "shm"  # the label of a run that has the bytes of its own /dev/shm, which no list tells
NEVER = "0001-01-01T00:00:00Z"
_EXITED = re.compile(r"Exited \((\d{1,3})\)")


def entries(engine: Engine, labels: Mapping[str, str | None]) -> list[dict[str, Any]]:
    """Return what the engine lists of containers with labels, each of that value or (None) of any, newest first."""
    wanted = [key if value is None else f"{key}={value}" for key, value in labels.items()]
    with engine.attempting("list containers") as client:
        found: list[dict[str, Any]] = client.containers(all=True, filters={"label": wanted})
    return found


def described_by(entry: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a list tells of a container as `docker inspect` would; None where it doesn't tell enough."""
    labels, status = entry.get("Labels") or {}, entry.get("State")
    size = whole_number(labels.get(LABEL_PREFIX + SHM))
    exited = _EXITED.match(entry.get("Status") or "") if status == "exited" else None
    names = sorted(entry.get("Names") or (), key=lambda name: name.count("/"))  # others are those of links to it
    if size is None or not names or (status != "running" and exited is None):
        return None
    state = {"Status": status, "ExitCode": int(exited[1]) if exited else 0, "StartedAt": NEVER, "FinishedAt": NEVER}
    return {
        "Id": entry["Id"],
        "Name": names[0],
        "Created": rfc3339(int(entry["Created"]) * SECOND),
        "State": state,
        "HostConfig": {"ShmSize": size, "IpcMode": "private"},
        "Config": {"Labels": labels},
    }
