"""A job's own flags of `docker run` that `up` can't give: what they do, only the command line does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.formats.docker.create_request import add_flags
from trainlaunch.formats.docker.flags import Flag
from trainlaunch.formats.docker.table import FOR_UP
from trainlaunch.plan.launch_plan import LaunchPlan

NOT_FOR_UP = "TL147"


def flag_findings(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield an error for each flag whose effect only the `docker` command can give."""
    body: dict[str, Any] = {"HostConfig": {}}
    for flag in plan.job.patch.flags if plan.job.patch else ():
        why = _why_not(body, flag)
        if why:
            yield Diagnostic(
                NOT_FOR_UP,
                f"`up` can't give {' '.join(flag.words)} the effect that it has for the docker command",
                f"run `trainlaunch render {plan.job.path} | sh`, or delete the flag",
                why=why,
                span=flag.span,
                field=f"patches.docker.extra_args.{flag.at}",
            )


def _why_not(body: dict[str, Any], flag: Flag) -> str:
    if flag.name not in FOR_UP:
        return "the command line does something for it that no create request says"
    try:
        add_flags(body, [(flag.name, flag.value)], folder=Path())
    except ValueError as cause:
        return str(cause)
    return ""
