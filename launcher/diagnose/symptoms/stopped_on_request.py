"""Somebody stopped the job through `up` or the engine: SIGTERM, then SIGKILL when the grace period was over.

**What you see**: exit code 143, 137, or one of the job's own after Ctrl-C, `down`, `docker stop` or
active_deadline.
**Why**: 137 here is the SIGKILL after stop_grace_period, not the out-of-memory killer.
**Way out**: nothing, if it was meant; raise stop_grace_period where a checkpoint takes longer.
**References**: docs.docker.com/reference/cli/docker/container/stop.
"""

from __future__ import annotations

import signal

from launcher.diagnose.diagnosis import Diagnosis
from launcher.diagnose.evidence import Evidence

CODE = "TL611"
NAME = "stopped-on-request"


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Match a stop of ours, or signals that were sent through the engine, unless the kernel killed it first."""
    if evidence.oom_killed or not evidence.stopped:
        return None
    by = evidence.stopped_by or f"someone through {evidence.where.keeper}"
    names = ", ".join(_name(each) for each in evidence.signals) or "no signal on record"
    saw = f"signals sent: {names}"
    if not evidence.where.on_this_machine:
        saw = f"the pod was deleted and ended with exit code {evidence.exit_code}"
    if evidence.killed_by:
        again = f"a second {by}" if evidence.killed_by == by else evidence.killed_by
        sentence = f"{by} stopped the job, and {again} killed it before its grace period was over"
        fix = "start it again with `trainlaunch up` when it should go on"
    elif signal.SIGKILL in evidence.signals and len(evidence.signals) > 1:
        sentence = f"{by} stopped the job, and it had not ended when its grace period was over"
        fix = "raise stop_grace_period if its checkpoint needs longer"
    else:
        sentence = f"{by} stopped the job"
        fix = "start it again with `trainlaunch up` when it should go on"
    return Diagnosis(CODE, NAME, sentence, saw, fix)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
