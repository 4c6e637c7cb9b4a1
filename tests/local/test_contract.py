"""The local backend keeps the contract of all backends, without an engine."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from trainlaunch.run.base.backend import Backend
from trainlaunch.run.local.backend import LocalBackend

from tests.run.contract import BackendContract, Begin, MakePlan, look, wait_until_ready
from tests.run.store_contract import StoreContract

# A file without a name in /dev/shm, as a batch of torch's is; then a worker's name, twice.
HOLDS = (
    "import os, time\n"
    "f = open('/dev/shm/{0}', 'w+b'); os.unlink(f.name); os.posix_fallocate(f.fileno(), 0, 5 << 20)\n"
    "print('ready', flush=True); time.sleep(60)\n"
)


@pytest.fixture
def backend(state: Path) -> LocalBackend:
    """Return a backend with a state of its own."""
    return LocalBackend(state)


class TestLocal(BackendContract):
    """Real processes of this host."""

    def test_shm_is_read_while_it_runs(self, backend: Backend, begin: Begin, make_plan_of: MakePlan) -> None:
        """The host's use and size, and the run's own share: an unlinked file, as torch's batches are."""
        name = uuid.uuid4().hex
        script = (
            "cp /bin/sleep ./pt_data_worker; ./pt_data_worker 60 & ./pt_data_worker 60 & "
            f'exec python3 -c "{HOLDS.format(name)}"'
        )
        container, session = begin(make_plan_of(command=["/bin/sh", "-c", script]))
        wait_until_ready(session)
        reading = backend.read_shm(look(backend, container))
        assert reading is not None
        assert reading.peak == 5 << 20
        assert reading.used >= reading.peak
        assert reading.size > reading.used
        assert reading.workers == 2


class TestLocalRuns(StoreContract):
    """What verbs do with runs on this host."""

    @pytest.fixture
    def options(self) -> tuple[str, ...]:
        """Return what names the target."""
        return ("--target", "local")
