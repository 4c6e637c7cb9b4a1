"""From a LaunchPlan to the text of its target. Pure: no clock, randomness, environment, network or engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from launcher.plan.launch_plan import LaunchPlan

if TYPE_CHECKING:
    from launcher.formats.docker_flags import Flag

__all__ = ["TEXT_TARGETS", "render", "unpatched"]

TEXT_TARGETS = ("docker", "compose", "kubernetes")  # those that have a text


def render(plan: LaunchPlan, *, base: Path | None = None) -> str:
    """Return the text of the plan's target, not yet verified.

    `base` is the folder that the text will lie in, and relative binds are then relative to it; None keeps them relative
    to the job file's folder. Raises JobFileRejected where a patch of the job can't be applied.
    """
    if plan.job.patch is None:
        return unpatched(plan, base=base)
    from launcher.render.patched import patched

    return patched(plan, base=base)


def unpatched(plan: LaunchPlan, *, base: Path | None, extra: tuple[Flag, ...] = ()) -> str:
    """Return the text without the job's patch; `extra` are flags for `docker run`."""
    if plan.target == "docker":
        from launcher.render.docker_run import docker_run_text

        return docker_run_text(plan, base=base, extra=extra)
    if plan.target == "compose":
        from launcher.render.compose import compose_text

        return compose_text(plan, base=base)
    from launcher.render.kubernetes import kubernetes_text

    return kubernetes_text(plan, base=base)
