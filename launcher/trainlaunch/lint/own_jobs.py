"""Job files of trainlaunch itself: what `plan` says of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import JobFileRejected, LaunchError
from trainlaunch.job.reading.job_reader import read_job
from trainlaunch.manuals import manuals
from trainlaunch.rules import plan_and_findings
from trainlaunch.rules.sources.source_text import TextFinding


def findings_of_job(path: Path) -> Iterator[TextFinding]:
    """Yield what `plan` would say of a job file, under the policies of its folder."""
    known = manuals()
    for each in _said(path):
        name = known[each.code].name if each.code in known else each.code.lower()
        yield TextFinding(each, name)


def _said(path: Path) -> tuple[Diagnostic, ...]:
    try:
        _, found = plan_and_findings(read_job(path))
    except JobFileRejected as rejected:
        return tuple(rejected.diagnostics)
    except LaunchError as error:
        return tuple(getattr(error, "diagnostics", ()))
    return found
