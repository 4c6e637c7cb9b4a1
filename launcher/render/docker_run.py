"""The docker target's text: a shell script that is one `docker run`, a flag a line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from launcher.job.spec import Gpus, Mount
from launcher.plan.launch_plan import LaunchPlan
from launcher.render.container import container_of
from launcher.render.header import header_lines
from launcher.render.spelling import bind_source, docker_size, has_relative_bind, needs_own_tmp
from launcher.render.templates import template_text
from launcher.units import format_cpus, format_duration

if TYPE_CHECKING:
    from launcher.job.docker_flags import Flag


def docker_run_text(plan: LaunchPlan, *, base: Path | None, extra: tuple[Flag, ...]) -> str:
    """Return the script; `base` is the folder that it will lie in, None where it is read from a pipe.

    `extra` are the job's own flags, after all others.
    """
    job = plan.job
    container = container_of(plan)
    return template_text(
        "docker-run.sh.j2",
        header=header_lines(plan, base=base),
        starts_in_own_folder=base is not None and has_relative_bind(plan),
        job=job,
        container=container,
        renamed_secrets=[(name, secret) for name, secret in container.secrets if name != secret.env],
        shm_size=docker_size(plan.shm.size.value),
        memory=None if plan.memory.limit is None else docker_size(plan.memory.limit),
        cpus=None if job.resources.cpus is None else format_cpus(job.resources.cpus),
        gpus=docker_gpus(plan.gpus),
        mounts=[docker_mount(plan, mount, base=base) for mount in job.mounts],
        own_tmp=needs_own_tmp(plan),
        duration=format_duration,
        extra=[each.words for each in extra],
    )


def docker_gpus(gpus: Gpus) -> str | None:
    """Return the value of `--gpus`. Bare ids would be counts and the last one would win, so a list is one CSV field."""
    if gpus.ids:
        return f'"device={",".join(gpus.ids)}"'
    if gpus.all:
        return "all"
    return str(gpus.count) if gpus.count else None


def docker_mount(plan: LaunchPlan, mount: Mount, *, base: Path | None) -> str:
    """Return the value of `--mount`, which docker reads as one CSV record."""
    kind = "volume" if mount.type == "scratch" else mount.type
    fields = [f"type={kind}"]
    if mount.type == "bind":
        fields.append(f"source={bind_source(plan, mount, base)}")
    elif mount.source is not None:
        fields.append(f"source={mount.source}")
    fields.append(f"target={mount.target}")
    if mount.read_only:
        fields.append("readonly")
    return ",".join(map(_csv_field, fields))


def _csv_field(text: str) -> str:
    if not set(text) & {",", '"'}:
        return text
    return '"' + text.replace('"', '""') + '"'
