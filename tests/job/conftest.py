"""The verbs that tests of job files use."""

from __future__ import annotations

import pytest

from tests.conftest import Runs


@pytest.fixture(scope="session")
def trainlaunch(trainlaunch_here: Runs) -> Runs:
    """Run the command line inside this process: no test of a job file is about a start."""
    return trainlaunch_here
