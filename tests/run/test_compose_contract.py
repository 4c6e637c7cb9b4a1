"""The compose backend keeps the contract of all backends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.compose.backend import ComposeBackend

from tests.jobs import plan_with, write_job
from tests.run.contract import BackendContract, CreatingContract, UserContract
from tests.run.store_contract import MakeJob, StoreContract


@pytest.mark.docker
class TestCompose(UserContract, CreatingContract):
    """Real containers that the real Compose makes; what it has no part in is Docker's."""

    @pytest.fixture
    def backend(self, compose: str) -> Iterator[ComposeBackend]:
        """Return a backend with a connection of its own."""
        with contextlib.closing(ComposeBackend()) as backend:
            yield backend

    @pytest.fixture
    def make_plan_of(self, fields: dict[str, Any], tmp_path: Path) -> Callable[..., LaunchPlan]:
        """Return the plan of the small job for this target."""

        def make(**over: Any) -> LaunchPlan:
            return plan_with(tmp_path, "compose", **{**fields, **over})

        return make


@pytest.mark.docker
class TestComposeRuns(StoreContract):
    """What verbs do with runs that Compose made."""

    @pytest.fixture
    def options(self) -> tuple[str, ...]:
        """Return what names the target."""
        return ("--target", "compose")

    @pytest.fixture
    def make_job(self, fields: dict[str, Any], compose: str, tmp_path: Path) -> MakeJob:
        """Write a small job of this target."""
        return lambda **over: write_job(tmp_path, **{**fields, "target": "compose", "command": None, **over})


@pytest.mark.docker
@pytest.mark.long
class TestComposeWholly(BackendContract):
    """All of it."""

    backend = TestCompose.backend
    make_plan_of = TestCompose.make_plan_of
