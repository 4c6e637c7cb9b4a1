"""The devcontainer target: what its JSON must say, and what it says, each as a Workload."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from trainlaunch.container.container import container_of
from trainlaunch.container.paths import checkouts
from trainlaunch.formats.docker.read import read_docker_run
from trainlaunch.formats.docker.shell_lexer import words_of
from trainlaunch.formats.workload import MountPoint, Workload
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.templating.quoting import sh_words
from trainlaunch.verify.expected_workload import engine_workload, kept_mounts, planned
from trainlaunch.yamltree.emitter import comment

_COMMAND = "// The job's command: "
_SOURCE = "${localWorkspaceFolder}"
_FROM_HERE = re.compile(r"\$\{localEnv:(\w+)\}")


def expected(plan: LaunchPlan, base: Path | None) -> Workload:
    """Return what the JSON says when it says what the plan says; its folder changes nothing."""
    job, wanted = plan.job, engine_workload(plan)
    kept = kept_mounts(plan, wanted)
    in_memory = [each for each in kept if each.type == "tmpfs"]
    parts = [_part(each.path, each.target, read_only=each.read_only) for each in checkouts(plan)]
    opened = {"workspaceMount": ""} if parts and job.working_dir is not None else {}
    return wanted._replace(
        pull_policy=None,
        labels={key: planned(value) for key, value in job.labels.items()},
        mounts=(*in_memory, *parts, *(each for each in kept if each.type != "tmpfs")),
        read_only=planned(True) if job.read_only else None,
        health=None,
        health_times={},
        entrypoint=planned((*container_of(plan).entrypoint, "true")),
        command=planned(()),
        # The comment's one line has line breaks as escapes.
        rest={"init": True, "command": words_of(str(comment(sh_words(container_of(plan).args)))), **opened},
    )


def _part(path: str, target: str, *, read_only: bool) -> MountPoint:
    source = _SOURCE if path == "." else f"{_SOURCE}/{path}"
    return MountPoint("bind", planned(source), planned(target), read_only)


def parse_rendering(text: str, folder: Path) -> Workload:
    """Return what a devcontainer.json starts. Raises ValueError where it is not one of ours."""
    lines = text.split("\n")
    comments = [each for each in lines if each.startswith("//")]
    found: dict[str, Any] = json.loads("\n".join(lines[len(comments) :]), object_pairs_hook=_once)
    words = [*found.pop("runArgs"), *(word for each in found.pop("mounts", []) for word in ("--mount", each))]
    variables = found.pop("containerEnv", {})
    secrets = {name: match[1] for name, value in variables.items() if (match := _FROM_HERE.fullmatch(value))}
    # Docker's own reader of flags; a variable of the editor is no shell's here, and stands as it is.
    (read,) = read_docker_run(f"docker run {sh_words((*words, found.pop('image')))}", "")
    named = [each.removeprefix(_COMMAND) for each in comments if each.startswith(_COMMAND)]
    rest = {key: each for key, each in read.rest.items() if key != "command"}
    return read._replace(
        name=planned(found.pop("name")),
        env={name: planned(value) for name, value in variables.items() if name not in secrets},
        secrets=secrets,
        working_dir=planned(found.pop("workspaceFolder", None)),
        entrypoint=planned(tuple(found.pop("postStartCommand"))),
        command=planned(()),
        rest={**rest, **found, "command": words_of("\n".join(named))},
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a property stands twice")
    return dict(pairs)
