from __future__ import annotations

import signal

from trainlaunch.diagnose.base.case import LIKELY, Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.diagnose.symptoms.oom_killed import OUT_OF_MEMORY
from trainlaunch.exit_codes import EXIT_INTERRUPTED

CODE = "TL611"
NAME = "stopped"
_TORCHRUN = LogPattern(
    "SIG", r"Received (?:Signals\.)?SIG(?:TERM|INT|HUP|QUIT) death signal|got signal: (?:Signals\.)?(?:SIG|\d)"
)
_GOT = LogPattern("SIG", r"SignalException: Process \d+ got signal")
_SCANCEL = LogPattern("rror", r"(?:JOB|STEP) \S+ ON \S+ CANCELLED AT [\d:T-]+(?: \*+)?\s*$")
_AGAIN = "start it again with `trainlaunch up` when it should go on"
_DEADLINE = "active_deadline"
_LONGER = (
    "raise active_deadline; `trainlaunch doctor JOB` while it runs again tells whether it works, or waits for what"
)


def diagnose(case: Case) -> Diagnosis | None:
    """Match a stop of ours, signals sent through the engine, and the words of those who obeyed one."""
    evidence = case.evidence
    if evidence.oom_killed:
        return None
    if not evidence.stopped:
        return _by_its_words(case)
    by = evidence.stopped_by or f"someone through {evidence.where.runtime}"
    names = ", ".join(_name(each) for each in evidence.signals) or "no signal on record"
    saw = f"signals sent: {names}"
    if not evidence.where.on_this_machine:
        saw = f"the pod was deleted and ended with exit code {evidence.exit_code}"
    fix = _LONGER if evidence.stopped_by == _DEADLINE else _AGAIN
    if evidence.killed_by:
        again = f"a second {by}" if evidence.killed_by == by else evidence.killed_by
        sentence = f"{by} stopped the job, and {again} killed it before its grace period was over"
    elif signal.SIGKILL in evidence.signals and len(evidence.signals) > 1:
        sentence = f"{by} stopped the job, and it had not ended when its grace period was over"
        fix = "raise stop_grace_period if its checkpoint needs longer"
    else:
        sentence = f"{by} stopped the job"
    return Diagnosis(CODE, NAME, sentence, seen(saw), fix)


def _by_its_words(case: Case) -> Diagnosis | None:
    hit = case.first(_TORCHRUN, _GOT, _SCANCEL)
    interrupted = case.raised is not None and case.raised.type == "KeyboardInterrupt"
    shown = hit or (case.raised_seen() if interrupted else None)
    if hit is not None and case.first(*OUT_OF_MEMORY) is not None:
        return None  # who is out of memory is cancelled afterwards
    if shown is None and case.exit_code != EXIT_INTERRUPTED:
        return None
    return Diagnosis(
        CODE,
        NAME,
        "a signal stopped the job: Ctrl-C, a stop of its container, or its scheduler",
        seen(shown or "exit code 130, which is 128 + SIGINT"),
        _AGAIN,
        LIKELY,
    )


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
