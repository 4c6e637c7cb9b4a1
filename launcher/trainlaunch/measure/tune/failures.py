"""Why nothing could be timed."""

from __future__ import annotations

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import NotMeasured
from trainlaunch.measure.tune.hearing import Ended, Hearing
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.units import format_duration

LINES = 20  # of the script's output
_NOTHING_TRAINED = (
    "by then no optimizer of torch had stepped after two batches of a loader, and no loop without one had had 50 "
    "batches in 20 s, or 4 in 60 s"
)


def never_timed(plan: LaunchPlan, heard: Hearing, ended: Ended, budget: float) -> NotMeasured:
    """Return the error of a run that gave no rate."""
    fix, why = f"run `trainlaunch up {plan.job.path}` first and see it train", ""
    seen = ", ".join(dict.fromkeys(heard.loaders))
    late = heard.told_all or (ended.code is None and heard.ended != "script")
    if late:
        message = f"nothing was timed within the budget of {format_duration(round(budget))}"
        why = "its batches take long"
        if heard.loader is None:
            why = f"{_NOTHING_TRAINED}; it iterated loaders at {seen}" if seen else _NOTHING_TRAINED
        fix = f"write --budget {format_duration(round(budget) * 3)}"
    elif ended.code:
        message = f"the script ended with exit code {ended.code} before a loader was timed"
    else:
        message = "the script ended before a loader was timed"
        why = f"loaders at {seen} gave too few batches" if seen else "it iterated no DataLoader of torch"
        fix = "let it train longer, or state num_workers yourself"
    lines = ended.log.strip().splitlines()[-LINES:]
    quoted = "\n".join(lines) if lines else ""
    why = "; its last lines are:\n".join(filter(None, (why, quoted))) if quoted and why else why or quoted
    return NotMeasured([Diagnostic("TL740", message, fix, why=why)])


def refusal(plan: LaunchPlan) -> Diagnostic | None:
    """Return why a job can't be tuned, None where it can."""
    if plan.nodes > 1:
        return Diagnostic(
            "TL741",
            f"the job runs on torchrun.nnodes {plan.nodes}, and one node is timed",
            "add `--set torchrun.nnodes=1`",
            why="the others would have to change their setting at the same batch",
            span=plan.job.span("torchrun.nnodes"),
            field="torchrun.nnodes",
        )
    if not plan.job.data_loader.loaders:
        return Diagnostic(
            "TL741",
            "data_loader is none, so there are no workers to time",
            "state data_loader where the script has DataLoaders",
            span=plan.job.span("data_loader"),
            field="data_loader",
        )
    return None
