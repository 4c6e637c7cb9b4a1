"""The engine's create request for a plan: what its verified `docker run` text says, without the command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from trainlaunch.container.job_variables import attempt_variables
from trainlaunch.container.secret_delivery import passed_secrets
from trainlaunch.formats.docker.create_request import request_of
from trainlaunch.formats.docker.line import run_lines
from trainlaunch.job.reserved import LABEL_PREFIX
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render import render
from trainlaunch.run.base.host_gpus import GPUS, held_by
from trainlaunch.run.base.run_query import MEASURES, OWNER_KEY, own_name
from trainlaunch.run.base.secret_values import secret_value
from trainlaunch.run.docker.inspect import SECRETS, SHM
from trainlaunch.verify import verified


def create_body(plan: LaunchPlan, *, run: str, attempt: int) -> dict[str, Any]:
    """Return the JSON body of `POST /containers/create` for an attempt of a run; raises as `plain_body`."""
    body = plain_body(plan)
    body["Labels"] |= run_labels(plan, run=run, attempt=attempt)
    own = (f"{key}={value}" for key, value in attempt_variables(plan, attempt).items())
    body["Env"] = [*(body.get("Env") or ()), *own]
    return body


def plain_body(plan: LaunchPlan) -> dict[str, Any]:
    """Return the JSON body of a container that is no run's; secret values are read now.

    A relative bind source is relative to the job file's folder. Raises TargetUnavailable for a secret whose source is
    gone since the checks.
    """
    passed = dict(passed_secrets(plan))

    def variable(name: str) -> str | None:
        return secret_value(plan, name) if name in passed else os.environ.get(name)

    (line,) = run_lines(verified(plan, render(plan)))
    return request_of(line, folder=Path(plan.job.path).parent, variable=variable)


def run_labels(plan: LaunchPlan, *, run: str, attempt: int) -> dict[str, str]:
    """Return the labels that only a run has; `own_labels` are those that every rendering carries."""
    values = {"run": run, "attempt": str(attempt), "max-attempts": str(plan.job.max_attempts), OWNER_KEY: own_name()}
    values[SHM] = str(plan.shm.size.value)
    if plan.gpus:
        values[GPUS] = held_by(plan)
    if plan.measures:
        values[MEASURES] = plan.measures
    if plan.job.secrets:
        values[SECRETS] = ",".join(plan.job.secrets)
    if plan.job.ttl_after_finished is not None:
        values["ttl-after-finished"] = str(plan.job.ttl_after_finished)
    return {LABEL_PREFIX + key: value for key, value in values.items()}
