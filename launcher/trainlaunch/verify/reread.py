"""Reads a final text back, and says what it must say, whatever its target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.verify.plain import plain


def reread(plan: LaunchPlan, text: str, *, base: Path | None) -> dict[str, Any]:
    """Return what `text`, a rendering for the plan's target, says, as plain values.

    `base` is the folder that its relative paths are relative to; None: the job file's own.
    """
    folder = Path(plan.job.path).parent if base is None else base
    return plain(_module(plan).reread(text, folder))


def expected(plan: LaunchPlan, *, base: Path | None) -> dict[str, Any]:
    """Return what the text of the plan's target says when it says what the plan says, as plain values."""
    return plain(_module(plan).expected(plan, base))


def _module(plan: LaunchPlan) -> Any:
    return plan.target_record.module("trainlaunch.verify")
