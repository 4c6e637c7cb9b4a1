"""The gitlab-ci target: what its job and the settings of its runner must say, and what they say, as one Workload."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from trainlaunch.container.container import container_of
from trainlaunch.formats.docker.read import read_docker_run
from trainlaunch.formats.docker.shell_lexer import words_of
from trainlaunch.formats.workload import Workload, flat
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render.ci_job import before
from trainlaunch.render.gitlab_ci import CLONE, GPU_TAGS
from trainlaunch.templating.quoting import sh_words
from trainlaunch.verify.expected_workload import engine_workload, kept_mounts, planned
from trainlaunch.yamltree.scalars import only_document

_SETTING = re.compile(r"^#     ([a-z_]+) = (.+)$", re.MULTILINE)
_FLAGS = {
    "shm_size": "shm-size",
    "group_add": "group-add",
    "volumes": "volume",
    "devices": "device",
}


def expected(plan: LaunchPlan, base: Path | None) -> Workload:
    """Return what the job and its runner say when they say what the plan says; the folder changes nothing."""
    job, container, wanted = plan.job, container_of(plan), engine_workload(plan)
    ahead = words_of("\n".join(before(plan, clone=CLONE, renames=True)))
    rest: dict[str, Any] = {"image.entrypoint": {"0": ""}, "interruptible": False}
    if plan.gpus:
        rest["tags"] = GPU_TAGS
    if job.active_deadline is not None:
        rest["timeout"] = f"{job.active_deadline // 60} minutes"
    return wanted._replace(
        pull_policy=None,
        labels={},
        secrets={},
        mounts=kept_mounts(plan, wanted),
        health=None,
        health_times={},
        stop_timeout=None,
        read_only=None,
        working_dir=None,
        entrypoint=planned((*ahead, "exec", *container.entrypoint, *container.args)),
        command=planned(()),
        rest=dict(flat(rest)),
    )


def parse_rendering(text: str, folder: Path) -> Workload:
    """Return what a job says, with what its header asks of the runner. Raises ValueError for a text of others."""
    ((name, job),) = only_document(text).items()
    image = job.pop("image")
    (script,) = job.pop("script")
    variables = job.pop("variables", {})
    if any(each.keys() != {"value", "expand"} or each["expand"] is not False for each in variables.values()):
        raise ValueError("a variable is expanded")
    words = tuple(word for flag, value in _flags(text) for word in (f"--{flag}", value))
    line = sh_words(("docker", "run", *words, image.pop("name").replace("$$", "$")))
    (read,) = read_docker_run(line, "")
    rest = {key: each for key, each in read.rest.items() if key not in ("command", "--volume")}
    entrypoint = {str(index): each for index, each in enumerate(image.pop("entrypoint"))}
    return read._replace(
        name=planned(name),
        env={key: planned(each["value"]) for key, each in variables.items()},
        entrypoint=planned(words_of(script)),
        command=planned(()),
        rest={**rest, **dict(flat({**job, "image": image, "image.entrypoint": entrypoint}))},
    )


def _flags(text: str) -> list[tuple[str, str]]:
    """Return the settings of the runner as the flags by which it makes the container."""
    found: list[tuple[str, str]] = []
    for key, value in _SETTING.findall(text):
        flag = _FLAGS.get(key, key)
        read = json.loads(re.sub(r'(?<=") = (?=")', ": ", value))
        if isinstance(read, dict):
            joined = ":" if key == "tmpfs" else "="
            found += [(flag, f"{name}{joined}{each}") for name, each in read.items()]
        elif isinstance(read, list):
            found += [(flag, each) for each in read]
        else:
            found.append((flag, str(read)))
    return found
