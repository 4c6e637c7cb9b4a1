"""The container that every target starts, before any target's spelling: one meaning everywhere."""

from __future__ import annotations

from typing import NamedTuple

from trainlaunch.container.job_variables import shutdown_variables
from trainlaunch.container.kubernetes import kubernetes_name
from trainlaunch.container.preflight import health_text, plan_variables, wrapper_words
from trainlaunch.container.secret_delivery import passed_secrets, path_variables
from trainlaunch.job.reserved import LABEL_PREFIX
from trainlaunch.job.spec import Secret
from trainlaunch.plan.launch_plan import LaunchPlan, cache_last_plan
from trainlaunch.plan.plan_label import LABEL as PLAN_LABEL
from trainlaunch.plan.plan_label import planned_of
from trainlaunch.plan.target_names import node_names

VARIABLE = "PET_RDZV_ENDPOINT"  # torchrun reads PET_<OPTION> where its argv has no --<option>


class Container(NamedTuple):
    """Literal strings, nothing escaped. The process is `entrypoint + args`.

    `entrypoint` ends with `/bin/sh -c WRAPPER trainlaunch`, and with what Python of ours the wrapper unpacks.
    `secrets` are those that are variables when it starts.
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


@cache_last_plan
def container_of(plan: LaunchPlan) -> Container:
    """Return what `plan` starts."""
    job = plan.job
    return Container(
        name=plan.name,
        entrypoint=(*(job.image_entrypoint or ()), *wrapper_words(plan)),
        args=plan.argv,
        env=(
            *rendezvous_variables(plan),
            *shutdown_variables(plan),
            *job.env.items(),
            *path_variables(plan).items(),
            *plan_variables(plan).items(),
        ),
        secrets=passed_secrets(plan),
        labels=(*job.labels.items(), (LABEL_PREFIX + "job", job.name)),
        notes=((LABEL_PREFIX + PLAN_LABEL, planned_of(plan).text()),),
        health=health_text(),
    )


def above_scripts(plan: LaunchPlan, between: tuple[str, ...]) -> tuple[str, ...]:
    """Return the comment that divides the job's own part of a text from scripts that are the same for every job.

    `between` names parts of the job that can stand nowhere else.
    """
    having = " that has them" if plan.inside.parts else ""
    line = f"From here on trainlaunch's own scripts, the same in every text of this format{having}."
    return (line, f"Between them: {' and '.join(between)}.") if between else (line,)


def rendezvous_endpoint(plan: LaunchPlan) -> str | None:
    """Return HOST:PORT of the first node as the others reach it; None where one node is all, and needs no name."""
    torchrun = plan.job.torchrun
    if torchrun is None or torchrun.nnodes == 1:
        return None
    kind = plan.job.kind
    if kind is None:
        host = node_names(plan.name, torchrun.nnodes)[0]
    else:
        host = kind.first_host.format(name=kubernetes_name(plan))
    return f"{host}:{torchrun.rdzv_port}"


def rendezvous_variables(plan: LaunchPlan) -> tuple[tuple[str, str], ...]:
    """Return the variable that tells torchrun; a job that sets it itself has its own rendezvous."""
    endpoint = rendezvous_endpoint(plan)
    if endpoint is None or VARIABLE in {*plan.job.env, *plan.job.secrets}:
        return ()
    return ((VARIABLE, endpoint),)


def name_conflict_message(plan: LaunchPlan) -> str:
    """Return the sentence; a run that `up` left, ended or not, holds the name until it is removed."""
    return (
        f"the name {plan.name} is taken: trainlaunch down {plan.job.name} ends and removes a run that up left, "
        f"docker rm {plan.name} another container; render --name gives this one another name"
    )
