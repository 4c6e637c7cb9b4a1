"""After a test run: how long the tests of each folder took, summed over all workers."""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePosixPath

import pytest

MOST_PARTS = 2  # of a folder's path: tests/run/cluster counts for tests/run


class FolderTimes:
    """A pytest plugin; under pytest-xdist it counts in the process that the workers report to."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)
        self._tests: dict[str, int] = defaultdict(int)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one phase of a test: its set-up, itself, or its teardown."""
        folder = folder_of(report.nodeid)
        self._seconds[folder] += report.duration
        self._tests[folder] += report.when == "setup"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table, the slowest folder first; one folder alone needs none."""
        if len(self._seconds) < 2:
            return
        terminalreporter.section("time per folder")
        rows = sorted(self._seconds.items(), key=lambda row: -row[1])
        rows.append(("together", sum(self._seconds.values())))
        counts = {**self._tests, "together": sum(self._tests.values())}
        for folder, seconds in rows:
            terminalreporter.write_line(f"{seconds:8.1f} s {counts[folder]:6} tests  {folder}")


def folder_of(nodeid: str) -> str:
    """Return the folder that a test counts for."""
    parts = PurePosixPath(nodeid.partition("::")[0]).parent.parts
    return "/".join(parts[:MOST_PARTS]) or "."
