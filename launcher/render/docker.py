"""The docker target's text: a shell script that is one `docker run`, a flag a line."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from launcher.container.container import container_of
from launcher.container.devices import gpu_devices
from launcher.container.paths import bind_source, has_relative_bind, host_source
from launcher.container.secrets import mounted_secrets, secret_mounts
from launcher.container.taken_name import taken_name
from launcher.container.tmpfs import tmpfs_options
from launcher.job.spec import Mount
from launcher.plan.launch_plan import LaunchPlan
from launcher.render.header import header_lines
from launcher.templating.environment import template_text
from launcher.units import docker_size, format_cpus, format_duration


class ShellSecret(NamedTuple):
    """A secret that the script passes on as the variable `name`: from the variable `env`, or from the file `path`.

    `holder` is the shell variable that has the value before `name` does, empty where `name` is that variable itself.
    """

    name: str
    env: str | None
    path: str
    holder: str


def text(plan: LaunchPlan, *, base: Path | None) -> str:
    """Return the script; `base` is the folder that it will lie in, None where it is read from a pipe.

    The job's own flags stand after all others.
    """
    job = plan.job
    container = container_of(plan)
    return template_text(
        "docker-run.sh.j2",
        header=header_lines(plan, base=base),
        starts_in_own_folder=base is not None and has_relative_bind(plan),
        job=job,
        container=container,
        name_taken=taken_name(plan),
        names_files=any(secret.file is not None for secret in job.secrets.values()),
        secrets=shell_secrets(plan, base=base),
        secret_files=[(name, host_source(plan, str(secret.file), base)) for name, secret in mounted_secrets(plan)],
        shm_size=docker_size(plan.shm.size.value),
        shm_derivation=plan.shm.size.derivation,
        memory=None if plan.memory.limit is None else docker_size(plan.memory.limit),
        cpus=None if job.resources.cpus is None else format_cpus(job.resources.cpus),
        gpus=docker_gpus(plan),
        devices=gpu_devices(plan),
        tmpfs=tmpfs_options(plan),
        mounts=[
            docker_mount(plan, mount, base=base)
            for mount in (*job.mounts, *secret_mounts(plan))
            if mount.type != "tmpfs"
        ],
        duration=format_duration,
        extra=[each.words for each in job.patch.flags] if job.patch else [],
    )


def shell_secrets(plan: LaunchPlan, *, base: Path | None) -> list[ShellSecret]:
    """Return the secrets that are variables of the container, in the job's order."""
    found: list[ShellSecret] = []
    held = 0
    for name, secret in container_of(plan).secrets:
        path = "" if secret.file is None else host_source(plan, secret.file, base)
        held += bool(path) or name != secret.env
        holder = f"trainlaunch_secret_{held}" if path or name != secret.env else ""
        found.append(ShellSecret(name, secret.env, path, holder))
    return found


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


def _csv_field(value: str) -> str:
    if not set(value) & {",", '"'}:
        return value
    return '"' + value.replace('"', '""') + '"'
