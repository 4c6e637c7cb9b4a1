"""From a LaunchPlan to the text of its target. Pure: no clock, randomness, environment, network or engine."""

from __future__ import annotations

from pathlib import Path

from launcher.plan.launch_plan import LaunchPlan

__all__ = ["TEXT_TARGETS", "render"]

TEXT_TARGETS = ("docker", "compose", "kubernetes")  # those that have a text


def render(plan: LaunchPlan, *, base: Path | None = None) -> str:
    """Return the text of the plan's target, not yet verified.

    `base` is the folder that the text will lie in, and relative binds are then relative to it; None keeps them relative
    to the job file's folder.
    """
    if plan.target == "docker":
        from launcher.render.docker_run import docker_run_text

        return docker_run_text(plan, base=base)
    if plan.target == "compose":
        from launcher.render.compose import compose_text

        return compose_text(plan, base=base)
    from launcher.render.kubernetes import kubernetes_text

    return kubernetes_text(plan, base=base)
