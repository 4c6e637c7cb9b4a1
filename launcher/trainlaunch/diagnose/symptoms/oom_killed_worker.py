from __future__ import annotations

from trainlaunch.diagnose.base.case import CERTAIN, LIKELY, Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.diagnose.base.memory_advice import memory_story, more_memory

CODE = "TL609"
NAME = "oom-killed-worker"
KILLED = LogPattern(
    "killed by signal: Killed", r"DataLoader worker \(pid\(?s?\)? [\d, ]+\) is killed by signal: Killed"
)


def diagnose(case: Case) -> Diagnosis | None:
    """Match torch's text for SIGKILL."""
    hit = case.first(KILLED)
    if hit is None:
        return None
    evidence = case.evidence
    sure = CERTAIN if evidence.oom_killed else LIKELY
    return Diagnosis(
        CODE,
        NAME,
        f"a DataLoader worker was killed, almost always for memory: {memory_story(evidence)}",
        seen(hit),
        more_memory(evidence),
        sure,
    )
