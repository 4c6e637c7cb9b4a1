"""What probe can find in a script, a module a family.

A function under `@defect(code)` takes from `finding.facts` what its check in trainlaunch/inside/probe/checks reports,
and its name is the defect's, with underscores.
"""

from __future__ import annotations

from trainlaunch.diagnostics import Diagnostic, Severity
from trainlaunch.manuals import manuals
from trainlaunch.measure.finding import Defect, ProbeFinding
from trainlaunch.measure.findings import bad_samples, memory_beyond_plan, repeated_draws, time_lost, workers_of_script

_FAMILIES = (bad_samples, memory_beyond_plan, repeated_draws, time_lost, workers_of_script)
DEFECTS = {each.name: each for family in _FAMILIES for each in vars(family).values() if isinstance(each, Defect)}


def diagnosed(finding: ProbeFinding) -> Diagnostic | None:
    """Return a finding in words, None where its defect is unknown; facts that don't fit cost only the numbers."""
    defect = DEFECTS.get(finding.defect)
    if defect is None:
        return None
    try:
        return Diagnostic(defect.code, *defect.words(finding.facts))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return Diagnostic(
            defect.code,
            manuals()[defect.code].title.rstrip("."),
            f"`trainlaunch explain {defect.code}` says what to write instead",
            severity=Severity.WARNING,
        )
