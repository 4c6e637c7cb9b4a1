"""The container that every target starts, before any target's spelling: one meaning everywhere."""

from __future__ import annotations

from typing import NamedTuple

from launcher.container.preflight import health_text, preflight_text
from launcher.container.rendezvous import rendezvous_variables
from launcher.container.secrets import passed_secrets, path_variables
from launcher.job.reserved import LABEL_PREFIX
from launcher.job.spec import Secret
from launcher.plan.fingerprint import RENDERING_FORMAT
from launcher.plan.launch_plan import LaunchPlan
from launcher.plan.planned import planned_of


class Container(NamedTuple):
    """Literal strings, nothing escaped. The process is `entrypoint + args`.

    `entrypoint` ends with `/bin/sh -c WRAPPER trainlaunch`. `secrets` are those that are variables when it starts.
    """

    name: str
    entrypoint: tuple[str, ...]
    args: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    secrets: tuple[tuple[str, Secret], ...]
    labels: tuple[tuple[str, str], ...]
    health: str


def container_of(plan: LaunchPlan) -> Container:
    """Return what `plan` starts."""
    job = plan.job
    wrapper = ("/bin/sh", "-c", preflight_text(plan), "trainlaunch")
    return Container(
        name=plan.name,
        entrypoint=(*(job.image_entrypoint or ()), *wrapper),
        args=plan.argv,
        env=(*rendezvous_variables(plan), *job.env.items(), *path_variables(plan).items()),
        secrets=passed_secrets(plan),
        labels=(*job.labels.items(), *own_labels(plan)),
        health=health_text(plan),
    )


def own_labels(plan: LaunchPlan) -> tuple[tuple[str, str], ...]:
    """Return the labels by which `ps`, `status` and `down` find a run and know what was planned."""
    values = {
        "job": plan.job.name,
        "format": str(RENDERING_FORMAT),
        "input": plan.input,
        "num-workers": str(plan.num_workers.value),
        **planned_of(plan).labels(),
    }
    return tuple((LABEL_PREFIX + key, value) for key, value in values.items())
