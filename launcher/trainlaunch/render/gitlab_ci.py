"""The gitlab-ci target's text: one job, and in its header what the config.toml of its runner must have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trainlaunch.container.container import container_of
from trainlaunch.container.paths import machine_mounts
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render.ci_job import step
from trainlaunch.render.engine_flags import docker_gpus, limit_flags
from trainlaunch.render.header import header_lines
from trainlaunch.templating.environment import template_text
from trainlaunch.units import docker_size, format_cpus
from trainlaunch.yamltree.emitter import yaml_string

CLONE = "CI_PROJECT_DIR"
GPU_TAGS = ("gpu",)


def text(plan: LaunchPlan, *, base: Path | None) -> str:
    """Return the job; it names paths of the repository, so its own folder changes nothing in it."""
    job = plan.job
    return template_text(
        "gitlab-ci.yaml.j2",
        header=header_lines(plan, base=base),
        shm_derivation=plan.shm.size.derivation,
        runner=[f"{key} = {value}" for key, value in runner_settings(plan)],
        name=plan.name,
        image=job.image.replace("$", "$$"),
        variables=container_of(plan).env,
        tags=GPU_TAGS if plan.gpus else (),
        timeout=None if job.active_deadline is None else f"{job.active_deadline // 60} minutes",
        step=step(plan, clone=CLONE, renames=True),
    )


def runner_settings(plan: LaunchPlan) -> Iterator[tuple[str, str]]:
    """Yield the keys of [runners.docker] with their TOML."""
    job, flags = plan.job, limit_flags(plan)
    yield "shm_size", str(plan.shm.size.value)
    if plan.memory.limit is not None:
        yield "memory", yaml_string(docker_size(plan.memory.limit))
    if job.resources.cpus is not None:
        yield "cpus", yaml_string(format_cpus(job.resources.cpus))
    gpus = docker_gpus(plan)
    if gpus is not None:
        yield "gpus", yaml_string(gpus)
    devices = [str(value) for name, value in flags if name == "device"]
    if devices:
        yield "devices", _list(devices)
    if job.user is not None:
        yield "user", yaml_string(job.user)
    if job.group_add:
        yield "group_add", _list(job.group_add)
    volumes = [_volume(each.source, each.target, read_only=each.read_only) for each in machine_mounts(plan)]
    if volumes:
        yield "volumes", _list(volumes)
    tmpfs = [str(value).split(":", 1) for name, value in flags if name == "tmpfs"]
    if tmpfs:
        yield "tmpfs", f"{{{', '.join(f'{yaml_string(path)} = {yaml_string(each)}' for path, each in tmpfs)}}}"
    limits = [f"{yaml_string(each.name)} = {yaml_string(f'{each.soft}:{each.hard}')}" for each in job.ulimits]
    if limits:
        yield "ulimit", f"{{{', '.join(limits)}}}"


def _list(values: list[str] | tuple[str, ...]) -> str:
    return f"[{', '.join(map(yaml_string, values))}]"


def _volume(source: str | None, target: str, *, read_only: bool) -> str:
    return ("" if source is None else f"{source}:") + target + ":ro" * read_only
