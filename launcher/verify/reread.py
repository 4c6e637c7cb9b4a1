"""Reads a final text back, whatever its target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from launcher.formats.workload import Workload
from launcher.plan.launch_plan import LaunchPlan
from launcher.verify.plain import plain
from launcher.verify.readback import ReadBack


def said(reading: ReadBack | Workload) -> dict[str, Any]:
    """Return the plain values of a reading, or of what is expected of one."""
    return reading._asdict() if isinstance(reading, ReadBack) else plain(reading)


def reread(plan: LaunchPlan, text: str, *, base: Path | None) -> ReadBack | Workload:
    """Return what `text`, a rendering for the plan's target, says."""
    folder = Path(plan.job.path).parent if base is None else base
    if plan.target == "docker":
        from launcher.verify.docker import reread_docker

        return reread_docker(text, folder)
    if plan.target == "compose":
        from launcher.verify.compose import reread_compose

        return reread_compose(text, folder)
    from launcher.verify.reread_kubernetes import reread_kubernetes

    return reread_kubernetes(text)
