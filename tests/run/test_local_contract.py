"""The local backend keeps the contract of all backends, without an engine."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from launcher.errors import TargetUnavailable
from launcher.plan.launch_plan import LaunchPlan
from launcher.run.backend import Backend
from launcher.run.local import LocalBackend
from tests.jobs import plan_with
from tests.run.conftest import SMALL
from tests.run.contract import WAITS, BackendContract, Begin, MakePlan, look, wait_until_ready

HOLDS = "import mmap, os\nf = open('/dev/shm/{0}', 'w+b'); os.unlink(f.name); os.posix_fallocate(f.fileno(), 0, 5 << 20)\n"


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[LocalBackend]:
    """Return a backend with a state of its own; what still runs at the end is killed."""
    backend = LocalBackend(tmp_path / "runs")
    yield backend
    for each in backend.runs():
        if each.status == "running":
            backend.kill(each.id)
            backend.wait(each.id)
        backend.remove(each.id)


@pytest.fixture
def make_plan_of(tmp_path: Path) -> MakePlan:
    """Return the plan of a small local job with other fields over it."""
    name = f"t-{uuid.uuid4().hex[:10]}"

    def make(**over: Any) -> LaunchPlan:
        return plan_with(tmp_path, "local", **{**SMALL, "name": name, **over})

    return make


class TestLocal(BackendContract):
    """Real processes of this host."""

    def test_shm_is_read_while_it_runs(self, backend: Backend, begin: Begin, make_plan_of: MakePlan) -> None:
        """The host's use and size, and the run's own share: an unlinked file, as torch's batches are."""
        name = uuid.uuid4().hex
        script = (
            "cp /bin/sleep ./pt_data_worker; ./pt_data_worker 60 & ./pt_data_worker 60 & "
            f'python3 -c "{HOLDS.format(name)}import time; print(\'ready\', flush=True); time.sleep(60)"'
        )
        container, session = begin(make_plan_of(command=["/bin/sh", "-c", script]))
        wait_until_ready(session)
        reading = backend.read_shm(look(backend, container))
        assert reading is not None
        assert reading.peak == 5 << 20
        assert reading.used >= reading.peak
        assert reading.size > reading.used
        assert reading.workers == 2
