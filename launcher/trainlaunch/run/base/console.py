"""What follows a run on an engine is given, and gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainlaunch.run.base.backend import Say
from trainlaunch.run.base.watch import HangWatch

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.evidence import Evidence
    from trainlaunch.plan.launch_plan import LaunchPlan


@dataclass(frozen=True, slots=True)
class Console:
    """Where a followed job's bytes go, and our own lines; `hangs` names a log that will never end.

    `leave` is told why the terminal is gone; nothing is shown from then on, and `is_left`. `compares`: what isn't as
    planned is said.
    """

    out: Callable[[bytes], None]
    err: Callable[[bytes], None]
    say: Say
    detect_hang: HangWatch
    on_hangup: Say = lambda _: None
    is_left: Callable[[], bool] = lambda: False
    report_deviations: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: its exit code, and the evidence (None: the target was lost).

    `node` is the one of several that the exit code is from.
    """

    exit_code: int
    evidence: Evidence | None
    node: int | None = None


def hang_watch(plan: LaunchPlan, redacted: Callable[[str], str] = str) -> HangWatch:
    """Return what tells of a log that its job will never end, in one sentence with the fix; empty where it may.

    `redacted` takes secrets out of a log before it is quoted.
    """
    memory = plan.job.resources.memory or 0

    def detect_hang(log: str) -> str:
        from trainlaunch.diagnose import explain_hang
        from trainlaunch.diagnose.base.evidence import Evidence

        known = Evidence(None, redacted(log), shm_size=plan.shm.size.value, memory=memory, target=plan.target)
        diagnosis = explain_hang(known)
        return f"{diagnosis.sentence}; {diagnosis.fix}" if diagnosis else ""

    return detect_hang
