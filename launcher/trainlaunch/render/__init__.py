"""From a LaunchPlan to the text of its target. Pure: no clock, randomness, environment, network or engine.

Each target that has a text has a module of its name here, whose `text(plan, base=…)` returns it.
"""

from __future__ import annotations

from pathlib import Path

from trainlaunch.plan.launch_plan import LaunchPlan

__all__ = ["render", "unpatched"]


def render(plan: LaunchPlan, *, base: Path | None = None) -> str:
    """Return the text of the plan's target, not yet verified.

    `base` is the folder that the text will lie in, and relative binds are then relative to it; None keeps them relative
    to the job file's folder. Raises JobFileRejected where a patch of the job can't be applied.
    """
    if plan.job.patch is None or plan.job.patch.flags:
        return _text(plan, base)
    from trainlaunch.render.apply_patch import patched

    return patched(plan, unpatched(plan, base=base))


def unpatched(plan: LaunchPlan, *, base: Path | None) -> str:
    """Return the text without the job's patch, under the name that the patched one has."""
    patch = plan.job.patch and plan.job.patch._replace(flags=())  # the rest is done to a renderer's text
    return _text(plan._replace(job=plan.job._replace(patch=patch)), base)


def _text(plan: LaunchPlan, base: Path | None) -> str:
    """Return what the target's module writes: of a patch it knows flags alone."""
    text: str = plan.target_record.module("trainlaunch.render").text(plan, base=base)
    return text
