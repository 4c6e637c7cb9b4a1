"""A container as the engine writes it: the request that creates one for a plan, and the descriptions that it gives.

The request is what the verified `docker run` text says, without the command line. One description is in full, and a
list of all is enough to choose a run.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from trainlaunch.container.job_variables import attempt_variables
from trainlaunch.container.preflight import preflight_behind_entrypoint
from trainlaunch.container.secret_delivery import passed_secrets
from trainlaunch.formats.docker.create_request import request_of
from trainlaunch.formats.docker.functions import inlined
from trainlaunch.formats.docker.line import run_lines
from trainlaunch.job.reserved import LABEL_PREFIX, SECRETS_FOLDER
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.plan_label import LABEL as PLAN_LABEL
from trainlaunch.plan.plan_label import planned_from, whole_number
from trainlaunch.render import render
from trainlaunch.run.base.backend import ContainerInfo
from trainlaunch.run.base.clock import SECOND, rfc3339, seconds
from trainlaunch.run.base.host_gpus import GPUS, held_by, held_in
from trainlaunch.run.base.run_query import MEASURES, OWNER_KEY, own_name
from trainlaunch.run.base.secret_values import read_beginning, secret_value
from trainlaunch.run.docker.client import Engine
from trainlaunch.targets import COMPOSE, DOCKER
from trainlaunch.verify import verified

COMPOSE_PROJECT = "com.docker.compose.project"  # every Compose puts it on all that it makes
SECRETS = "secrets"  # the label that names a run's secrets, after its prefix
MAX_SHOWN = 40
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_WHOLE = re.compile(r"[0-9]{1,18}")
_FITTING = {
    **dict.fromkeys(("job", MEASURES), _NAME),
    GPUS: re.compile(r"[-,:/A-Za-z0-9]{0,4096}"),
    "run": re.compile(r"[A-Za-z0-9-]{0,63}"),
    **dict.fromkeys(("attempt", "max-attempts", "ttl-after-finished", "node"), _WHOLE),
}
_RUNNING = frozenset({"running", "paused", "restarting", "removing", "stopping"})
SHM = "shm"  # the label of a run that has the bytes of its own /dev/shm, which no list tells
NEVER = "0001-01-01T00:00:00Z"
Entry = Mapping[str, Any]  # what the list has of a container
Told = Callable[[Entry], dict[str, Any] | None]  # a description of it, None where it doesn't tell enough
_EXITED = re.compile(r"Exited \((\d{1,3})\)")


def started_from(inspected: Mapping[str, Any]) -> ContainerInfo:
    """Return what `docker inspect` says about a container of ours."""
    state, host = inspected["State"], inspected["HostConfig"]
    labels = inspected["Config"].get("Labels") or {}
    status = state["Status"]
    never_ran = status == "created"
    health = state.get("Health") or {}
    results = [each for each in health.get("Log") or () if status in _RUNNING or _came_to_a_result(each)] or [{}]
    return ContainerInfo(
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
        planned=planned_from(labels.get(LABEL_PREFIX + PLAN_LABEL), size=host.get("ShmSize")),
        ttl=_number(labels, "ttl-after-finished"),
        target=(COMPOSE if COMPOSE_PROJECT in labels else DOCKER).name,
        node=_number(labels, "node"),
        project=labels.get(COMPOSE_PROJECT, ""),
        owner=labels.get(LABEL_PREFIX + OWNER_KEY, ""),
        measures=labels.get(LABEL_PREFIX + MEASURES, ""),
        gpus=labels.get(LABEL_PREFIX + GPUS) or held_in(host),
        fronted=preflight_behind_entrypoint((inspected.get("Path") or "", *(inspected.get("Args") or ()))),
    )


def secrets_of(inspected: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a container's secrets: its variables that a label names, and its mounted files.

    A file is read where it is on this host, and readable.
    """
    config = inspected.get("Config") or {}
    names = (config.get("Labels") or {}).get(LABEL_PREFIX + SECRETS, "").split(",")
    variables = (each.partition("=") for each in config.get("Env") or ())
    yield from ((name, value) for name, _, value in variables if name in names)
    for each in inspected.get("Mounts") or ():
        place = PurePosixPath(each.get("Destination") or "/")
        if str(place.parent) == SECRETS_FOLDER:
            with contextlib.suppress(OSError):
                yield place.name, read_beginning(each.get("Source") or "")


def alien_label(inspected: Mapping[str, Any]) -> str:
    """Return the first label of a container that nothing of ours wrote so, as a clause; empty where all fit."""
    labels = (inspected.get("Config") or {}).get("Labels") or {}
    for key, fits in _FITTING.items():
        value = labels.get(LABEL_PREFIX + key)
        if value is not None and not fits.fullmatch(str(value)):
            shown = str(value) if len(str(value)) <= MAX_SHOWN else f"{str(value)[:MAX_SHOWN]}…"
            return f"its label {LABEL_PREFIX}{key} is {shown!r}"
    return ""


def _number(labels: Mapping[str, str], key: str) -> int | None:
    return whole_number(labels.get(LABEL_PREFIX + key))


def _came_to_a_result(check: Mapping[str, Any]) -> bool:
    """Whether a health check said something; the last one often ends with the container, in words of the runtime."""
    return check.get("ExitCode") in (0, 1)


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


def create_body(plan: LaunchPlan, *, run: str, attempt: int) -> dict[str, Any]:
    """Return the JSON body of `POST /containers/create` for an attempt of a run; raises as `plain_body`."""
    body = plain_body(plan)
    body["Labels"] |= run_labels(plan, run=run, attempt=attempt)
    own = (f"{key}={value}" for key, value in attempt_variables(plan, attempt).items())
    body["Env"] = [*(body.get("Env") or ()), *own]
    return body


def plain_body(plan: LaunchPlan) -> dict[str, Any]:
    """Return the JSON body of a container that is no run's; secret values are read now.

    A relative bind source is relative to the job file's folder. Raises TargetUnavailable for a secret whose source is
    gone since the checks.
    """
    passed = dict(passed_secrets(plan))

    def variable(name: str) -> str | None:
        return secret_value(plan, name) if name in passed else os.environ.get(name)

    (line,) = run_lines(inlined(verified(plan, render(plan))))
    return request_of(line, folder=Path(plan.job.path).parent, variable=variable)


def run_labels(plan: LaunchPlan, *, run: str, attempt: int) -> dict[str, str]:
    """Return the labels that only a run has; `own_labels` are those that every rendered file carries."""
    values = {"run": run, "attempt": str(attempt), "max-attempts": str(plan.job.max_attempts), OWNER_KEY: own_name()}
    values[SHM] = str(plan.shm.size.value)
    if plan.gpus:
        values[GPUS] = held_by(plan)
    if plan.measures:
        values[MEASURES] = plan.measures
    if plan.job.secrets:
        values[SECRETS] = ",".join(plan.job.secrets)
    if plan.job.ttl_after_finished is not None:
        values["ttl-after-finished"] = str(plan.job.ttl_after_finished)
    return {LABEL_PREFIX + key: value for key, value in values.items()}
