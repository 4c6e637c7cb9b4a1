"""Explains a run from its evidence: what happened, what shows it, what to type.

How it ended is `base/account`'s matter: a symptom is asked about the texts that may explain the end alone. Adding a
symptom: its row at the end of a family in `symptoms/`, its place in `ranking`, its rows in tests/diagnose.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trainlaunch.diagnose.base.case import Case, Diagnosis
from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.diagnose.base.flags import without_fields
from trainlaunch.diagnose.base.scan import Scanner, scan_text
from trainlaunch.diagnose.ranking import BY_NAME, ORDER, all_texts, ranked
from trainlaunch.diagnose.symptoms import limits, worker_faults

SYMPTOMS = ORDER
# What shows in a job that goes on, hangs before what may end it later.
LIVE = (
    "dist-timeout-secondary",
    "shm-exhausted-hang",
    "fork-deadlock",
    "slow-loading",
    "shm-exhausted",
    "oom-killed",
    "fd-limit",
)
MAX_SENTENCES = 2
_FEEDER = r"queues\.py.*\b_feed\b"

__all__ = [
    "SYMPTOMS",
    "all_causes",
    "causes_json",
    "end_of",
    "explain_end",
    "explain_hang",
    "explain_live",
    "new_scanner",
]


def new_scanner() -> Scanner:
    """Return what reads a log as it comes, for `Evidence.scanned`."""
    return Scanner(all_texts())


def all_causes(evidence: Evidence) -> tuple[Diagnosis, ...]:
    """Return all causes, the best first, then the echoes of the first; nothing where nothing went wrong."""
    found = (each.redacted(evidence.redact) for each in ranked(_case(evidence)))
    return tuple(
        each if evidence.has_job else without_fields(each, evidence.target, by_run=evidence.by_run) for each in found
    )


def end_of(evidence: Evidence) -> str:
    """Return how it ended in one line: exception, message, place and rank, or the code; `` where nothing tells."""
    return evidence.redact(_case(evidence).end)


def explain_end(evidence: Evidence) -> tuple[Diagnosis, ...]:
    """Return one or two causes for a person who looks at a screen: no echo, and nothing where no cause is known."""
    causes = [each for each in all_causes(evidence) if not each.echo_of and each.symptom != "unknown"]
    return tuple(causes[:MAX_SENTENCES])


def causes_json(diagnoses: Iterable[Diagnosis]) -> list[dict[str, Any]]:
    """Return causes as plain values."""
    fields = ("code", "name", "sentence", "saw", "fix", "commands", "confidence")
    return [{name: getattr(each, name) for name in fields} for each in diagnoses]


def explain_hang(evidence: Evidence) -> Diagnosis | None:
    """Return the cause where the log of a job that still runs shows that it waits for ever."""
    case = _case(evidence)
    found = BY_NAME["shm-exhausted-hang"].diagnose(case) or BY_NAME["fork-deadlock"].diagnose(case)
    if found is not None:
        return found
    if case.first(limits.NONE_USABLE, limits.TOO_LONG, within=_FEEDER) is not None:
        return BY_NAME["tmpdir-unusable"].diagnose(case)
    return BY_NAME["unpicklable"].diagnose(case) if worker_faults.in_feeder(case) else None


def explain_live(evidence: Evidence) -> tuple[Diagnosis, ...]:
    """Return what is wrong with a run that goes on, by its log and by a look at its processes, the worst first."""
    case = _case(evidence)
    hang = explain_hang(evidence)
    found = [] if hang is None else [hang]
    if evidence.look is not None:
        seen = (BY_NAME[each].diagnose(case, evidence.look) for each in LIVE)
        found += [each for each in seen if each is not None]
    first = {each.symptom.removesuffix("-hang"): each for each in reversed(found)}  # a hang says what is full as well
    return tuple(each.redacted(evidence.redact) for each in reversed(first.values()))


def _case(evidence: Evidence) -> Case:
    return Case(evidence, evidence.scanned or scan_text(evidence.log, all_texts()))
