"""Which tests share one of pytest-xdist's workers: those that share something made once for all of them.

Every other test goes to whichever worker is free, so it may share nothing: its names, ports, folders, containers,
networks and images are its own.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
# By folder or file; the longest that fits counts. Groups begin first, since they are the longest to run.
GROUPS = {
    "examples/test_claims.py": "examples",  # an example is trained once for all that is said of it
    "examples/test_jobs.py": "examples",
    "installed": "installed",  # one installation of the wheel
    "run/podman": "podman",  # one Podman service with a storage of its own
    "run/test_engine_restart.py": "own engine",  # one dockerd that is killed and started again
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that share a worker; without pytest-xdist the mark means nothing."""
    for item in items:
        place = item.path.relative_to(TESTS)
        for each in (place, *place.parents):
            if (group := GROUPS.get(each.as_posix())) is not None:
                item.add_marker(pytest.mark.xdist_group(group))
                break
