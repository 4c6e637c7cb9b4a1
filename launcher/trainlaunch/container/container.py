"""The container that every target starts, before any target's spelling: one meaning everywhere."""

from __future__ import annotations

from typing import NamedTuple

from trainlaunch.container.preflight import health_text, preflight_text
from trainlaunch.container.rendezvous import rendezvous_variables
from trainlaunch.container.secrets import passed_secrets, path_variables
from trainlaunch.container.shutdown import shutdown_variables
from trainlaunch.job.reserved import LABEL_PREFIX
from trainlaunch.job.spec import Secret
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.once import once_for_plan
from trainlaunch.plan.planned import LABEL as PLAN_LABEL
from trainlaunch.plan.planned import planned_of


class Container(NamedTuple):
    """Literal strings, nothing escaped. The process is `entrypoint + args`.

    `entrypoint` ends with `/bin/sh -c WRAPPER trainlaunch`. `secrets` are those that are variables when it starts.
    `labels` are what someone selects by, `notes` what only `status` reads: labels of an engine, annotations of a pod.
    """

    name: str
    entrypoint: tuple[str, ...]
    args: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    secrets: tuple[tuple[str, Secret], ...]
    labels: tuple[tuple[str, str], ...]
    notes: tuple[tuple[str, str], ...]
    health: str


@once_for_plan
def container_of(plan: LaunchPlan) -> Container:
    """Return what `plan` starts."""
    job = plan.job
    wrapper = ("/bin/sh", "-c", preflight_text(plan), "trainlaunch")
    return Container(
        name=plan.name,
        entrypoint=(*(job.image_entrypoint or ()), *wrapper),
        args=plan.argv,
        env=(*rendezvous_variables(plan), *shutdown_variables(plan), *job.env.items(), *path_variables(plan).items()),
        secrets=passed_secrets(plan),
        labels=(*job.labels.items(), (LABEL_PREFIX + "job", job.name)),
        notes=((LABEL_PREFIX + PLAN_LABEL, planned_of(plan).text()),),
        health=health_text(plan),
    )
