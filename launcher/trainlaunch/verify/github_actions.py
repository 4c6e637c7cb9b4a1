"""The github-actions target: what its workflow must say, and what it says, each as a Workload."""

from __future__ import annotations

import re
from pathlib import Path

from trainlaunch.container.container import container_of
from trainlaunch.formats.docker.read import read_docker_run
from trainlaunch.formats.docker.shell_lexer import words_of
from trainlaunch.formats.workload import MountPoint, Workload, flat
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render.ci_job import before
from trainlaunch.render.github_actions import CHECKOUT, CLONE, RUNS_ON, runners
from trainlaunch.verify.expected_workload import engine_workload, kept_mounts, planned
from trainlaunch.yamltree.scalars import only_document

_SECRET = re.compile(r"\$\{\{ secrets\.(\w+) \}\}")
_LITERAL = "${{ '${{' }}"


def expected(plan: LaunchPlan, base: Path | None) -> Workload:
    """Return what the workflow says when it says what the plan says; its folder changes nothing."""
    job, container, wanted = plan.job, container_of(plan), engine_workload(plan)
    ahead = words_of("\n".join(before(plan, clone=CLONE)))
    inputs = {"runners": {"description": "labels of the runner, as JSON", "type": "string", "default": runners(plan)}}
    steps = {"0.uses": CHECKOUT, "1.name": job.name, "1.shell": "sh"}
    rest = {
        "on": {"workflow_dispatch": {"inputs": inputs}, "workflow_call": {"inputs": inputs}},
        "permissions": {"contents": "read"},
        "runs-on": RUNS_ON,
        "steps": steps,
        **({"timeout-minutes": job.active_deadline // 60} if job.active_deadline is not None else {}),
    }
    return wanted._replace(
        pull_policy=None,
        labels={key: planned(value) for key, value in job.labels.items()},
        mounts=kept_mounts(plan, wanted),
        read_only=planned(True) if job.read_only else None,
        health=None,
        health_times={},
        stop_timeout=None,
        working_dir=None,
        entrypoint=planned((*ahead, "exec", *container.entrypoint, *container.args)),
        command=planned(()),
        rest={**dict(flat(rest)), "--init": True},
    )


def parse_rendering(text: str, folder: Path) -> Workload:
    """Return what a workflow's one job says. Raises ValueError where it is not one of ours."""
    document = only_document(text)
    ((name, job),) = document.pop("jobs").items()
    container = job.pop("container")
    run = _literal(job["steps"][1].pop("run"))
    line = f"docker create {container.pop('options')} {container.pop('image')}"
    (read,) = read_docker_run(_literal(line), "")
    env = container.pop("env", {})
    secrets = {key: match[1] for key, value in env.items() if (match := _SECRET.fullmatch(value))}
    values = {key: _literal(value) for key, value in env.items() if key not in secrets}
    mounts = [_mount(each) for each in container.pop("volumes", [])]
    if container or document.pop("name") != name:
        raise ValueError(f"the container has keys that no rendered file has: {', '.join(container)}")
    rest = {key: each for key, each in read.rest.items() if key != "command"}
    steps = {f"{index}.{key}": each for index, step in enumerate(job.pop("steps")) for key, each in step.items()}
    return read._replace(
        name=planned(name),
        env={key: planned(value) for key, value in values.items()},
        secrets=secrets,
        mounts=(*read.mounts, *mounts),
        entrypoint=planned(words_of(run)),
        command=planned(()),
        rest={**rest, **dict(flat({**document, **job, "steps": steps}))},
    )


def _literal(value: str) -> str:
    """Return a text as the runner passes it on. Raises ValueError for an expression that gives anything but itself."""
    if "${{" in value.replace(_LITERAL, ""):
        raise ValueError(f"an expression of GitHub's stands in {value[:60]}")
    return value.replace(_LITERAL, "${{")


def _mount(entry: str) -> MountPoint:
    parts = _literal(entry).split(":")
    read_only = len(parts) == 3 and parts[2] == "ro"
    if len(parts) > 3 or (len(parts) == 3 and not read_only):
        raise ValueError(f"the volume {entry} has another form")
    if len(parts) == 1:
        return MountPoint("scratch", None, planned(parts[0]))
    source, target = parts[:2]
    kind = "bind" if source.startswith("/") else "volume"
    return MountPoint(kind, planned(source), planned(target), read_only)
