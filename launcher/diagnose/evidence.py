"""What is known about the end of a run, or about one that goes on: the input of every diagnosis."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field

from launcher.plan.planned import Planned
from launcher.targets import DEFAULT_TARGET, TARGETS, Target

ENDING_SIGNALS = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGKILL, signal.SIGTERM})


@dataclass(frozen=True, slots=True)
class Evidence:
    """Facts only. `exit_code` None: it has not ended, or nobody knows; sizes are bytes, 0 or None where unknown.

    `stopped_by` names who ended it through us (`Ctrl-C`, `active_deadline`), `killed_by` who would not wait for its
    grace period to be over, `signals` are those sent through the target, `private_shm` says that `shm_size` is in
    effect, `log` is the last part of both streams. `reason` and `words` are a cluster's own for an end, or a wait, that
    the container did not bring about, as `Evicted`.
    """

    exit_code: int | None
    log: str = ""
    oom_killed: bool = False
    error: str = ""
    private_shm: bool = True
    ipc_mode: str = ""
    shm_size: int = 0
    memory: int = 0
    shm_peak: int | None = None
    signals: tuple[int, ...] = ()
    stopped_by: str = ""
    killed_by: str = ""
    target: str = DEFAULT_TARGET
    reason: str = ""
    words: str = ""
    planned: Planned = field(default_factory=Planned)

    @property
    def where(self) -> Target:
        """What is so of its target."""
        return TARGETS[self.target]

    @property
    def stopped(self) -> bool:
        """Whether somebody ended it on purpose; SIGUSR1 and the like ask a job for something else."""
        return bool(self.stopped_by) or not ENDING_SIGNALS.isdisjoint(self.signals)
