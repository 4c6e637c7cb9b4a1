"""What an engine tells of all containers in one list: enough to choose a run, and for a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainlaunch.job.reserved import LABEL_PREFIX
from trainlaunch.plan.plan_label import whole_number
from trainlaunch.run.docker.client import Engine
from trainlaunch.run.timestamps import SECOND, rfc3339

SHM = "shm"  # the label of a run that has the bytes of its own /dev/shm, which no list tells
NEVER = "0001-01-01T00:00:00Z"
Entry = Mapping[str, Any]  # what the list has of a container
Told = Callable[[Entry], dict[str, Any] | None]  # a description of it, None where it doesn't tell enough
_EXITED = re.compile(r"Exited \((\d{1,3})\)")


def entries(engine: Engine, labels: Mapping[str, str | None]) -> list[Entry]:
    """Return what the engine lists of containers with labels, None for any value; Docker's are newest first."""
    wanted = [key if value is None else f"{key}={value}" for key, value in labels.items()]
    with engine.attempting("list containers") as client:
        found: list[Entry] = client.containers(all=True, filters={"label": wanted})
    return found


def made_before(listed: Sequence[Entry], label: str, now: float) -> list[Entry]:
    """Return those that were made so many seconds before a time as their label says, or say no number."""
    spans = [whole_number((each.get("Labels") or {}).get(label)) for each in listed]
    return [each for each, span in zip(listed, spans, strict=True) if span is None or each["Created"] + span <= now]


def described_by(entry: Entry) -> dict[str, Any] | None:
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
