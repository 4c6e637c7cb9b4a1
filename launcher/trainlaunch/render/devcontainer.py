"""The devcontainer target's text: the job's container as an editor opens it, with the preflight at each start.

The editor keeps the container alive by a command of its own; the job's stands in the header, to be typed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trainlaunch.container.container import container_of
from trainlaunch.container.paths import checkouts, machine_mounts
from trainlaunch.container.secret_delivery import passed_secrets
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render.engine_flags import csv_field, docker_mount, limit_flags
from trainlaunch.render.header import header_lines
from trainlaunch.templating.quoting import sh_words
from trainlaunch.yamltree.emitter import comment

WORKSPACE = "${localWorkspaceFolder}"


def text(plan: LaunchPlan, *, base: Path | None) -> str:
    """Return the JSON with its comments; it names paths of the repository, so its own folder changes nothing in it."""
    lines = [*header_lines(plan, base=base), *_said(plan)]
    document = json.dumps(properties(plan), indent=2, ensure_ascii=False)
    return "".join(f"// {comment(each)}\n" for each in lines) + document + "\n"


def _said(plan: LaunchPlan) -> list[str]:
    return [
        "It belongs into .devcontainer, or a folder below that.",
        f"--shm-size is {plan.shm.size.derivation}. Nobody asks for the container's health here.",
        f"The job's command: {sh_words(container_of(plan).args)}",
    ]


def properties(plan: LaunchPlan) -> dict[str, Any]:
    """Return the properties; what the preflight proves at each start is the container, without the job."""
    job, container = plan.job, container_of(plan)
    env = dict(container.env) | {name: f"${{localEnv:{each.env}}}" for name, each in passed_secrets(plan)}
    check = (*container.entrypoint, "true")
    found: dict[str, Any] = {
        "name": plan.name,
        "image": job.image,
        "init": True,
        "runArgs": run_arguments(plan),
        "mounts": mounts(plan),
        "containerEnv": env,
        "postStartCommand": list(check),
    }
    if job.working_dir is not None:
        found["workspaceFolder"] = job.working_dir
    own = workspace_mount(plan)
    if own is not None:
        found["workspaceMount"] = own
    return {key: value for key, value in found.items() if value not in ([], {})}


def run_arguments(plan: LaunchPlan) -> list[str]:
    """Return runArgs, each flag and value a word."""
    words = [word for name, value in limit_flags(plan) for word in (f"--{name}", *([] if value is None else [value]))]
    words += [word for key, value in plan.job.labels.items() for word in ("--label", f"{key}={value}")]
    words += ["--stop-signal", plan.job.stop_signal] if plan.job.stop_signal is not None else []
    return [*words, "--stop-timeout", str(plan.job.stop_grace_period)]


def mounts(plan: LaunchPlan) -> list[str]:
    """Return the mounts beside the workspace, as docker's --mount has them."""
    parts = [_checkout(each.path, each.target, read_only=each.read_only) for each in checkouts(plan)]
    return [*parts, *(docker_mount(plan, each, base=None) for each in machine_mounts(plan))]


def workspace_mount(plan: LaunchPlan) -> str | None:
    """Return an empty workspaceMount where the job mounts its code itself and names a folder to open; else None."""
    return "" if checkouts(plan) and plan.job.working_dir is not None else None


def _checkout(path: str, target: str, *, read_only: bool) -> str:
    source = WORKSPACE if path == "." else f"{WORKSPACE}/{path}"
    fields = ["type=bind", f"source={source}", f"target={target}", *(["readonly"] if read_only else [])]
    return ",".join(map(csv_field, fields))
