"""The dockerfile target's text: an image of the job's base with its code, its command and the preflight before it.

An image can't size /dev/shm: the last line of the header is the `docker run` that does.
"""

from __future__ import annotations

import posixpath
from pathlib import Path

from trainlaunch.container.container import container_of
from trainlaunch.container.paths import Checkout, checkouts, machine_mounts
from trainlaunch.container.secret_delivery import passed_secrets
from trainlaunch.job.host_paths import repository_root
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render.engine_flags import docker_mount, limit_flags
from trainlaunch.render.header import header_lines
from trainlaunch.templating.environment import template_text
from trainlaunch.units import format_duration

REQUIREMENTS = "requirements.txt"
_OF_THE_IMAGE = frozenset({"user"})  # flags that an instruction says


def text(plan: LaunchPlan, *, base: Path | None) -> str:
    """Return the Dockerfile; its build context is the repository's root, wherever it lies itself."""
    job, container = plan.job, container_of(plan)
    copies = checkouts(plan)
    return template_text(
        "Dockerfile.j2",
        header=header_lines(plan, base=base),
        shm_derivation=plan.shm.size.derivation,
        run_line=run_line(plan),
        job=job,
        container=container,
        requirements=[_copied(each, REQUIREMENTS) for each in copies if has_requirements(plan, each)],
        installs=[_installed(each) for each in copies if has_requirements(plan, each)],
        copies=[(f"{each.path}/", f"{each.target}/") for each in copies],
        check=job.healthcheck,
        duration=format_duration,
        health=("/bin/sh", "-c", container.health),
    )


def run_line(plan: LaunchPlan) -> tuple[str, ...]:
    """Return the words of the line that starts the image with what no image has."""
    flags = [each for each in limit_flags(plan) if each[0] not in _OF_THE_IMAGE]
    words = [word for name, value in flags for word in (f"--{name}", *([] if value is None else [value]))]
    mounts = [word for each in machine_mounts(plan) for word in ("--mount", docker_mount(plan, each, base=None))]
    secrets = [word for name, _ in passed_secrets(plan) for word in ("--env", name)]
    stop = ["--stop-timeout", str(plan.job.stop_grace_period)]
    return ("docker", "run", "--rm", "--init", *words, *mounts, *secrets, *stop, image_name(plan))


def image_name(plan: LaunchPlan) -> str:
    """Return what the header calls the image that is built."""
    return f"{plan.name}:local"


def has_requirements(plan: LaunchPlan, copied: Checkout) -> bool:
    """Return whether a copied folder has a requirements.txt, which is then installed before the code is copied."""
    return (repository_root(plan.job.path) / copied.path / REQUIREMENTS).is_file()


def _copied(copied: Checkout, name: str) -> tuple[str, ...]:
    return posixpath.normpath(f"{copied.path}/{name}"), f"{copied.target}/{name}"


def _installed(copied: Checkout) -> tuple[str, ...]:
    target = f"{copied.target}/{REQUIREMENTS}"
    return "python", "-m", "pip", "install", "--no-cache-dir", "--requirement", target
