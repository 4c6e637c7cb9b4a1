"""What a symptom says, and the helpers that symptoms share."""

from __future__ import annotations

import re
from dataclasses import dataclass

from launcher.diagnose.evidence import Evidence
from launcher.units import GIB, format_size, human_size, round_up

CERTAIN = "certain"
LIKELY = "likely"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One cause: `sentence` is what happened, `saw` the evidence, `fix` what to type; confidence certain or likely."""

    code: str
    name: str
    sentence: str
    saw: str
    fix: str
    confidence: str = CERTAIN


def line_with(log: str, pattern: str) -> str:
    """Return the last line of a log in which a regular expression is found, stripped; `` without one."""
    for line in reversed(log.splitlines()):
        if re.search(pattern, line):
            return line.strip()
    return ""


def shm_place(evidence: Evidence) -> str:
    """Return which /dev/shm the job used; the engine reports a size of its own even where another one is in effect."""
    if not evidence.where.private_shm:
        return "this host's /dev/shm"
    if evidence.ipc_mode == "host":
        return "the host's /dev/shm (ipc is host, so the size that inspect shows is not in effect)"
    if not evidence.private_shm:
        return f"the /dev/shm of another container (ipc is {evidence.ipc_mode})"
    if evidence.shm_size:
        return f"/dev/shm of {human_size(evidence.shm_size)}"
    return "/dev/shm"


def memory_story(evidence: Evidence) -> str:
    """Return how the memory limit and /dev/shm go together for this run, as a clause."""
    if not evidence.where.enforces_limits:
        return "the host's memory also pays for what is in /dev/shm"
    limit = f"the memory limit of {human_size(evidence.memory)}" if evidence.memory else "the memory limit"
    if evidence.private_shm and evidence.memory and evidence.shm_size >= evidence.memory:
        return f"{limit} also pays for /dev/shm, which alone may grow to {human_size(evidence.shm_size)}"
    if evidence.shm_peak:
        return f"{limit} also pays for /dev/shm, which held up to {human_size(evidence.shm_peak)}"
    return f"{limit} also pays for what is in /dev/shm"


def more_memory(evidence: Evidence) -> str:
    """Return what to type so that the memory limit is large enough; a larger /dev/shm would make it worse."""
    if not evidence.where.enforces_limits:
        return "lower num_workers, prefetch_factor or batch_size, or end what else uses this host's memory"
    if not evidence.memory:
        return "set resources.memory, or lower num_workers or prefetch_factor; a larger shm_size alone makes it worse"
    shm = evidence.shm_size if evidence.private_shm else 0
    wanted = evidence.memory + shm if shm >= evidence.memory else round_up(evidence.memory + evidence.memory // 2, GIB)
    return (
        f"set resources.memory to {format_size(wanted)}, or lower num_workers or prefetch_factor; "
        "a larger shm_size alone makes it worse"
    )
