"""What follows a run on an engine is given, and gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainlaunch.run.base.backend import Say
from trainlaunch.run.base.watch import HangWatch

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Console:
    """Where a followed job's bytes go, and our own lines; `hangs` names a log that will never end.

    `leave` is told why the terminal is gone; nothing is shown from then on. `compares`: what isn't as planned is said.
    """

    out: Callable[[bytes], None]
    err: Callable[[bytes], None]
    say: Say
    detect_hang: HangWatch
    on_hangup: Say = lambda _: None
    report_deviations: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: its exit code, and the evidence (None: the target was lost).

    `node` is the one of several that the exit code is from.
    """

    exit_code: int
    evidence: Evidence | None
    node: int | None = None
