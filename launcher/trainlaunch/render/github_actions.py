"""The github-actions target's text: a workflow with one job, whose container is sized by `container.options`."""

from __future__ import annotations

import re
from pathlib import Path

from trainlaunch.container.container import container_of
from trainlaunch.container.paths import machine_mounts
from trainlaunch.container.secret_delivery import passed_secrets
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render.ci_job import step
from trainlaunch.render.engine_flags import limit_flags
from trainlaunch.render.header import header_lines
from trainlaunch.templating.environment import template_text

CHECKOUT = "actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683"  # v4.2.2
CLONE = "GITHUB_WORKSPACE"
RUNS_ON = "${{ fromJSON(inputs.runners) }}"
_PLAIN = re.compile(r"[A-Za-z0-9_./:=@%+,-]+")


def text(plan: LaunchPlan, *, base: Path | None) -> str:
    """Return the workflow; it names paths of the repository, so its own folder changes nothing in it."""
    job, container = plan.job, container_of(plan)
    return template_text(
        "github-actions.yaml.j2",
        header=header_lines(plan, base=base),
        shm_derivation=plan.shm.size.derivation,
        name=plan.name,
        step_name=literal(job.name),
        runners=runners(plan),
        runs_on=RUNS_ON,
        checkout=CHECKOUT,
        minutes=None if job.active_deadline is None else job.active_deadline // 60,
        image=literal(job.image),
        options=literal(" ".join(options(plan))),
        env=[(name, literal(value)) for name, value in container.env],
        secrets=[(name, secret_of(str(secret.env))) for name, secret in passed_secrets(plan)],
        volumes=volumes(plan),
        step=literal(step(plan, clone=CLONE)),
    )


def runners(plan: LaunchPlan) -> str:
    """Return the labels of a runner that has what the job asks for, as JSON: the workflow's default."""
    return '["self-hosted", "linux", "gpu"]' if plan.gpus else '["ubuntu-24.04"]'


def options(plan: LaunchPlan) -> list[str]:
    """Return the words of container.options: a runner hands them to `docker create`."""
    words = ["--init"]
    for name, value in limit_flags(plan):
        words += [f"--{name}"] if value is None else [f"--{name}", _option(value)]
    for key, value in plan.job.labels.items():
        words += ["--label", _option(f"{key}={value}")]
    if plan.job.stop_signal is not None:
        words += ["--stop-signal", plan.job.stop_signal]
    return words


def _option(value: str) -> str:
    """Return a value that the runner and a shell take for the same word; validation refuses all others."""
    return value if _PLAIN.fullmatch(value) else '"' + value.replace('"', '\\"') + '"'


def volumes(plan: LaunchPlan) -> list[str]:
    """Return the entries of container.volumes: what the runner's machine has beside the repository."""
    found = []
    for mount in machine_mounts(plan):
        source = "" if mount.source is None else f"{literal(mount.source)}:"
        found.append(f"{source}{literal(mount.target)}" + ":ro" * mount.read_only)
    return found


def literal(value: str) -> str:
    """Return a value in which GitHub sees no expression: `${{` is one that gives itself."""
    return value.replace("${{", "${{ '${{' }}")


def secret_of(name: str) -> str:
    """Return the expression of a secret's value."""
    return f"${{{{ secrets.{name} }}}}"
