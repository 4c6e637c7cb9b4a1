"""The docker target's text: a shell script whose first function is one `docker run`, and whose last are constant."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from trainlaunch.container.container import Container, above_scripts, container_of, name_conflict_message
from trainlaunch.container.paths import has_relative_bind, host_source
from trainlaunch.container.preflight import plan_variables, preflight_text
from trainlaunch.container.secret_delivery import mounted_secrets, secret_mounts
from trainlaunch.formats.docker.functions import END_OF_TEXT
from trainlaunch.job.reserved import PLAN_VARIABLE
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render.engine_flags import docker_mount, limit_flags
from trainlaunch.render.header import header_lines
from trainlaunch.templating.environment import template_text
from trainlaunch.units import format_duration


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
        name_taken=name_conflict_message(plan),
        names_files=any(secret.file is not None for secret in job.secrets.values()),
        secrets=shell_secrets(plan, base=base),
        secret_files=[(name, host_source(plan, str(secret.file), base)) for name, secret in mounted_secrets(plan)],
        shm_derivation=plan.shm.size.derivation,
        plan_variable=PLAN_VARIABLE,
        numbers=plan_variables(plan)[PLAN_VARIABLE],
        in_front=container.entrypoint[1 : container.entrypoint.index(preflight_text())],
        scripts=scripts_of(container),
        unpacks=bool(plan.inside.parts),
        above_scripts=above_scripts(plan, ()),
        end=END_OF_TEXT,
        flags=limit_flags(plan),
        mounts=[
            docker_mount(plan, mount, base=base)
            for mount in (*job.mounts, *secret_mounts(plan))
            if mount.type != "tmpfs"
        ],
        duration=format_duration,
        extra=[each.words for each in job.patch.flags] if job.patch else [],
    )


def scripts_of(container: Container) -> tuple[tuple[str, str], ...]:
    """Return the functions that print the constant texts of a container, by name; a shell drops a last line's end."""
    unpack = container.entrypoint[container.entrypoint.index(preflight_text()) + 2 :]
    named = [("health", container.health), ("preflight", preflight_text()), *(("unpack", each) for each in unpack)]
    return tuple(named)


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
