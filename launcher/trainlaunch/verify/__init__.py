"""Reads a rendered file back and compares it with the plan: nothing that differs is written (laws 2 and 8)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import RenderingDisagrees
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.verify.expected_workload import expected, parse_rendering

__all__ = ["verified", "verify"]

_MAX_SHOWN_LENGTH = 120


def verified(plan: LaunchPlan, text: str, *, base: Path | None = None) -> str:
    """Return `text` if it says what `plan` says; raises as `verify` does if not."""
    verify(plan, text, base=base)
    return text


def verify(plan: LaunchPlan, text: str, *, base: Path | None = None) -> None:
    """Raise RenderingDisagrees with each difference between `text` and `plan`.

    `base` is the folder that relative binds of `text` are relative to; None: the job file's own. Raises JobFileRejected
    for a patch of the job that changes what the plan decided.
    """
    if plan.job.patch is not None:
        from trainlaunch.verify.patch_proof import without_patch  # few jobs have one

        text = without_patch(plan, text, base=base)
    differences = tuple(_differences(plan, text, base))
    if differences:
        raise RenderingDisagrees(differences)


def _differences(plan: LaunchPlan, text: str, base: Path | None) -> Iterator[Diagnostic]:
    wanted = expected(plan, base=base)
    try:
        found = parse_rendering(plan, text, base=base)
    except Exception as cause:  # whatever a changed text makes a reader raise, it can't be trusted
        yield _difference(plan, "text", "readable", f"unreadable: {cause}")
        return
    for name, want in wanted.items():
        have = found[name]
        if isinstance(want, dict):
            for key in [*want, *(each for each in have if each not in want)]:
                if want.get(key) != have.get(key):
                    yield _difference(plan, f"{name} {key}", want.get(key), have.get(key))
        elif want != have:
            yield _difference(plan, name, want, have)


def _difference(plan: LaunchPlan, what: str, want: object, have: object) -> Diagnostic:
    return Diagnostic(
        code="TL902",
        message=f"the rendered {plan.target} file says {what} {_shown(have)}, the plan says {_shown(want)}",
        why="each rendered file is read back before it is written; this one would start another job than the plan",
        fix="undo the change to the template, or report it with the job file if nobody changed one",
    )


def _shown(value: object) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= _MAX_SHOWN_LENGTH else text[: _MAX_SHOWN_LENGTH - 1] + "…"
