"""Which tests share one of pytest-xdist's workers, and which run only where they are asked for.

Those share a worker that share something made once for all of them, and those of a file that needs no engine: what its
fixtures made is made once. In a file with a test that needs one, which waits more than it computes, each test goes to
whichever worker is free. It may share nothing: its names, ports, folders, containers, networks and images are its own.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadGroupScheduling

TESTS = Path(__file__).parent
# By folder or file; the longest that fits counts. Groups begin first, since they are the longest to run.
GROUPS = {
    "examples/test_claims.py": "examples",  # an example is trained once for all that is said of it
    "examples/test_jobs.py": "examples",
    "examples/test_resume.py": "examples",
    "examples/test_quickstart.py": "quickstart",  # its own image
    "bench/test_launch_overhead.py": "installed",  # one installation of the wheel
    "cli/test_start.py": "installed",
    "installed": "installed",
    "run/test_gpu_holds.py": "GPUs",  # the machine's, which all runs of trainlaunch share
    "run/podman": "podman",  # one Podman service with a storage of its own
    "slurm": "slurm",  # a Slurm of one node
    "run/test_engine_restart.py": "own engine",  # one dockerd that is killed and started again
}
# Of those without a group, what takes longest: begun with the last, one process would be at them alone.
LONG_ONES = ("run/test_tune.py", "run/test_training.py", "run/test_probe.py", "run/test_probe_findings.py", "bench")
ONLY_ASKED_FOR = ("libraries", "long")


class Scheduling(LoadGroupScheduling):  # type: ignore[misc]
    """Deals out groups and files whole. One message a test, and a queue of thousands, cost more than most tests do."""

    def _split_scope(self, nodeid: str) -> str:
        scope: str = super()._split_scope(nodeid)
        file = nodeid.partition("::")[0]
        return file if scope == nodeid and not _has_containers(TESTS.parent / file) else scope

    def remove_node(self, node: Any) -> str | None:
        """Return the test that a process died of; the next one gets the rest of its file without it, not with it."""
        units = self.assigned_work[node].values()
        died_of = next(((unit, test) for unit in units for test, is_over in unit.items() if not is_over), None)
        if died_of is not None:
            unit, test = died_of
            unit[test] = True
        super().remove_node(node)
        return died_of and died_of[1]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling | None:
    """Replace the scheduler of `--dist=loadgroup`."""
    return Scheduling(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave modules without real containers unread where only tests with them are asked for: most of the collection."""
    if config.getoption("markexpr") != "docker" or collection_path.suffix != ".py":
        return None
    return None if _has_containers(collection_path) else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that share a worker, and leave out what only `-m` asks for; groups and large files come first."""
    left_out = {mark for mark in ONLY_ASKED_FOR if mark not in config.getoption("markexpr")}
    config.hook.pytest_deselected(items=[item for item in items if left_out & _marks(item)])
    items[:] = [item for item in items if not left_out & _marks(item)]
    for item in items:
        if "docker" in _marks(item) and not _has_containers(item.path):
            raise pytest.UsageError(f"{item.nodeid} is marked docker by another module: `-m docker` leaves it out")
        if (group := _group_of(item.path)) is not None:
            item.add_marker(pytest.mark.xdist_group(group))
    sizes = Counter(item.path for item in items)
    items.sort(key=lambda item: (_group_of(item.path) is None, not _is_long(item.path), -sizes[item.path]))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse to run without groups: a pytest of which pytest-xdist doesn't know the node IDs drops them in silence."""
    grouped = next((each for each in session.items if any(each.iter_markers("xdist_group"))), None)
    if getattr(session.config.option, "loadgroup", False) and grouped is not None and "@" not in grouped.nodeid:
        raise pytest.UsageError(f"pytest-xdist has put {grouped.nodeid} into no group: install the versions of [test]")


@cache
def _has_containers(module: Path) -> bool:
    return "mark.docker" in module.read_text(encoding="utf-8")


@cache
def _is_long(path: Path) -> bool:
    place = path.relative_to(TESTS)
    return any(each.as_posix() in LONG_ONES for each in (place, *place.parents))


@cache
def _group_of(path: Path) -> str | None:
    place = path.relative_to(TESTS)
    return next((GROUPS[each.as_posix()] for each in (place, *place.parents) if each.as_posix() in GROUPS), None)


def _marks(item: pytest.Item) -> set[str]:
    return {mark.name for mark in item.iter_markers()}
