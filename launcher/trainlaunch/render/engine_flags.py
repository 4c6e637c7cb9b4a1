"""Flags of `docker run` that size and limit a job's container: the same wherever a text sets them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trainlaunch.container.engine_options import gpu_devices, tmpfs_options
from trainlaunch.container.paths import bind_source
from trainlaunch.gpu_names import ALL_GPUS
from trainlaunch.job.spec import Mount
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.units import docker_size, format_cpus

Flag = tuple[str, str | None]  # a long name without its dashes, and its value; None for a switch


def limit_flags(plan: LaunchPlan) -> tuple[Flag, ...]:
    """Return the size of /dev/shm, the limits, the devices, the user and the file systems in memory."""
    return tuple(_limits(plan))


def _limits(plan: LaunchPlan) -> Iterator[Flag]:
    job = plan.job
    yield "shm-size", docker_size(plan.shm.size.value)
    if plan.memory.limit is not None:
        yield "memory", docker_size(plan.memory.limit)
    if job.resources.cpus is not None:
        yield "cpus", format_cpus(job.resources.cpus)
    gpus = docker_gpus(plan)
    if gpus is not None:
        yield "gpus", gpus
    yield from (("device", each) for each in gpu_devices(plan))
    yield from (("ulimit", f"{each.name}={each.soft}:{each.hard}") for each in job.ulimits)
    if job.user is not None:
        yield "user", job.user
    yield from (("group-add", each) for each in job.group_add)
    if job.read_only:
        yield "read-only", None
    yield from (("tmpfs", f"{target}:{options}") for target, options in tmpfs_options(plan).items())


def docker_gpus(plan: LaunchPlan) -> str | None:
    """Return the value of `--gpus`, None where there is none to write, as for AMD's.

    Bare ids would be counts and the last one would win, so a list is one CSV field.
    """
    gpus = plan.gpus
    if plan.job.resources.gpu_vendor != "nvidia":
        return None
    if gpus.ids:
        return f'"device={",".join(gpus.ids)}"'
    if gpus.all:
        return ALL_GPUS
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
    return ",".join(map(csv_field, fields))


def csv_field(value: str) -> str:
    """Return one field of a CSV record, quoted where need be."""
    if not set(value) & {",", '"'}:
        return value
    return '"' + value.replace('"', '""') + '"'
