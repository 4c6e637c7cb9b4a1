"""SIGKILL or SIGTERM reached the job, and neither its memory limit nor the engine sent it.

**What you see**: exit code 137 with OOMKilled false, or 143 without a stop.
**Why**: the host itself ran out of memory, somebody used `kill` on the host, or the job killed itself.
**Way out**: look into the host's kernel log; with a memory limit below what the host has, the limit is hit first
and named.
**References**: docs.kernel.org/admin-guide/mm/concepts.html.
"""

from __future__ import annotations

from launcher.diagnose.diagnosis import LIKELY, Diagnosis, more_memory
from launcher.diagnose.evidence import Evidence

CODE = "TL612"
NAME = "killed-from-outside"
_SIGNALS = {137: "SIGKILL", 143: "SIGTERM"}


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Match 137 and 143 that nothing else explains."""
    name = _SIGNALS.get(evidence.exit_code or 0)
    if name is None or evidence.oom_killed or evidence.stopped or evidence.reason:
        return None
    sentence = f"{name} ended the job, and neither its memory limit nor {evidence.where.keeper} sent it"
    if name == "SIGKILL" and not evidence.where.enforces_limits:
        fix = f"look for `Out of memory` in `sudo dmesg`; where it is there, {more_memory(evidence)}"
    elif name == "SIGKILL" and not evidence.where.on_this_machine:
        fix = (
            "look for `Out of memory` in the node's kernel log; `kubectl get events` may name who deleted or drained it"
        )
    elif name == "SIGKILL":
        fix = "look for `Out of memory` in `sudo dmesg`; a lower resources.memory would be met first, and named"
    else:
        fix = "look for who sends SIGTERM: a scheduler, a shutdown of the host, or the job itself"
    saw = f"exit code {evidence.exit_code}, OOMKilled false, no signal sent through {evidence.where.keeper}"
    return Diagnosis(CODE, NAME, sentence, saw, fix, LIKELY)
