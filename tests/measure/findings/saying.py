"""What a finding says, for tests of its words."""

from __future__ import annotations

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.measure.finding import ProbeFinding
from trainlaunch.measure.findings import diagnosed


def saying(defect: str, **facts: object) -> Diagnostic:
    """Return a finding of a loader at train.py:48 in words."""
    said = diagnosed(ProbeFinding(defect, 0, "train.py:48", facts))
    assert said is not None
    return said
