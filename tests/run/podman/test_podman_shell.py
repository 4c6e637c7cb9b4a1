"""`shell` on Podman, whose API is Docker's with differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.run.docker.shell import SHELL_LABEL

from tests.jobs import write_job
from tests.run.podman.conftest import Podman
from tests.run.test_shell import LOADER
from tests.shells import ShellBasics, ShellContract, Shells, shells

pytestmark = pytest.mark.docker


class TestPodman(ShellBasics):
    """Podman as target docker."""

    @pytest.fixture
    def left(self, podman: Podman) -> Callable[[], object]:
        """Return what lists the containers."""
        return lambda: podman("ps", "--all", "--quiet", f"--filter=label={SHELL_LABEL}")

    @pytest.fixture
    def shell(self, fields: dict[str, Any], tmp_path: Path) -> Iterator[Shells]:
        """Return shells of the job."""
        own = {"command": ["sleep", "600"], "env": {"GREETING": "hi there"}, "data_loader": LOADER}
        with shells(write_job(tmp_path, **{**fields, **own}).parent) as found:
            yield found


@pytest.mark.long
class TestPodmanWholly(ShellContract):
    """What becomes of it, as on Docker."""

    left = TestPodman.left
    shell = TestPodman.shell
