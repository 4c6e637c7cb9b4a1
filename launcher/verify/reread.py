"""Reads a final text back, whatever its target."""

from __future__ import annotations

from pathlib import Path

from launcher.plan.launch_plan import LaunchPlan
from launcher.verify.readback import ReadBack


def reread(plan: LaunchPlan, text: str, *, base: Path | None) -> ReadBack:
    """Return what `text`, a rendering for the plan's target, says."""
    folder = Path(plan.job.path).parent if base is None else base
    if plan.target == "docker":
        from launcher.verify.reread_docker import reread_docker

        return reread_docker(text, folder)
    if plan.target == "compose":
        from launcher.verify.reread_compose import reread_compose

        return reread_compose(text, folder)
    from launcher.verify.reread_kubernetes import reread_kubernetes

    return reread_kubernetes(text)
