"""Explains a run from its evidence: what happened, what shows it, what to type.

Adding a symptom: one module in `symptoms/`, its place in `ranking.ORDER`, its rows in tests/diagnose.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from launcher.diagnose.case import Case
from launcher.diagnose.diagnosis import Diagnosis
from launcher.diagnose.evidence import Evidence
from launcher.diagnose.ranking import ORDER, ranked
from launcher.diagnose.scan import Scanner, scan_text
from launcher.diagnose.symptoms import fork_deadlock, shm_exhausted_hang, tmpdir_unusable, unpicklable
from launcher.diagnose.vocabulary import all_texts

SYMPTOMS = ORDER
MOST_SENTENCES = 2
_FEEDER = r"queues\.py.*\b_feed\b"

__all__ = ["SYMPTOMS", "all_causes", "causes_json", "explain_end", "explain_hang", "new_scanner"]


def new_scanner() -> Scanner:
    """Return what reads a log as it comes, for `Evidence.scanned`."""
    return Scanner(all_texts())


def all_causes(evidence: Evidence) -> tuple[Diagnosis, ...]:
    """Return all causes, the best first, then the echoes of the first; nothing where nothing went wrong."""
    return tuple(each.redacted(evidence.redact) for each in ranked(_case(evidence)))


def explain_end(evidence: Evidence) -> tuple[Diagnosis, ...]:
    """Return one or two causes for a person who looks at a screen: no echo, and nothing where no cause is known."""
    causes = [each for each in all_causes(evidence) if not each.echo_of and each.symptom != "unknown"]
    return tuple(causes[:MOST_SENTENCES])


def causes_json(diagnoses: Iterable[Diagnosis]) -> list[dict[str, Any]]:
    """Return causes as plain values."""
    fields = ("code", "name", "sentence", "saw", "fix", "commands", "confidence")
    return [{name: getattr(each, name) for name in fields} for each in diagnoses]


def explain_hang(evidence: Evidence) -> Diagnosis | None:
    """Return the cause where the log of a job that still runs shows that it waits for ever."""
    case = _case(evidence)
    found = shm_exhausted_hang.diagnose(case) or fork_deadlock.diagnose(case)
    if found is not None:
        return found
    if case.first(tmpdir_unusable.NONE_USABLE, tmpdir_unusable.TOO_LONG, within=_FEEDER) is not None:
        return tmpdir_unusable.diagnose(case)
    return unpicklable.diagnose(case) if unpicklable.in_feeder(case) else None


def _case(evidence: Evidence) -> Case:
    return Case(evidence, evidence.scanned or scan_text(evidence.log, all_texts()))
