"""Plans a drafted job, and takes out of it what no plan takes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import JobFileRejected
from trainlaunch.init.takeover.job_draft import JobDraft, example_image, text_of
from trainlaunch.job.reading.job_reader import read_job
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.rules import check_plan, plan_job

_MAX_ROUNDS = 12
_NEEDED = frozenset({"name", "image", "command", "script", "target"})


def planned(draft: JobDraft) -> LaunchPlan:
    """Return the plan of a draft, from which fields that nothing can be planned with are taken out and noted.

    Raises JobFileRejected where what is left can't be planned either.
    """
    for _ in range(_MAX_ROUNDS):
        try:
            return plan_of(draft)
        except JobFileRejected as rejected:
            last = rejected
            left_out = [_left_out(draft, each) for each in rejected.diagnostics]  # all of them at once
            if not any(left_out):
                break
    raise JobFileRejected(each._replace(span=None) for each in last.diagnostics) from last


def plan_of(draft: JobDraft) -> LaunchPlan:
    """Return the plan of a draft, lying where its relative paths mean what they say. Raises JobFileRejected."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.yaml"
        path.write_text(text_of(draft), encoding="utf-8")
        plan = plan_job(read_job(path, use_lock=False))
        check_plan(plan)
    return plan


def _left_out(draft: JobDraft, error: Diagnostic) -> bool:
    """Take the field that an error is about out of the draft; return whether there was one to take out."""
    steps = [each for each in error.field.split(".") if each]
    if steps == ["image"] and "image" not in draft.kept:
        draft.note(f"the image {draft.fields['image']}", error.message, error.fix)
        draft.set("image", example_image(), "The text's image is not one that an engine takes: put its name here.")
        draft.kept.add("image")
        return True
    if not steps or steps[0] in _NEEDED:
        return False
    path = _deepest(draft.fields, steps)
    if path is None or ".".join(path) in draft.kept:
        return False
    block: Any = draft.fields
    for step in path[:-1]:
        block = block[int(step) if isinstance(block, list) else step]
    last = path[-1]
    value = block.pop(int(last) if isinstance(block, list) else last)
    shown = " ".join(f"{'.'.join(path)} {value}".split())
    draft.note(shown if len(shown) <= 120 else f"{shown[:119]}…", error.message, error.fix)
    return True


def _deepest(fields: Mapping[str, Any], steps: list[str]) -> list[str] | None:
    """Return the longest path of `steps` that the draft has, with keys that hold dots in one piece."""
    found: list[str] = []
    block: Any = fields
    while steps:
        for taken in range(len(steps), 0, -1):
            key = ".".join(steps[:taken])
            if isinstance(block, Mapping) and key in block:
                break
            if isinstance(block, list) and key.isdigit() and int(key) < len(block):
                break
        else:
            return found or None
        found.append(key)
        block = block[int(key) if isinstance(block, list) else key]
        steps = steps[taken:]
    return found or None
