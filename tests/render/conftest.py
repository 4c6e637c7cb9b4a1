"""The command line runs inside the tests' process: no start is the subject here."""

from __future__ import annotations

import pytest

from tests.conftest import Runs


@pytest.fixture(scope="session")
def trainlaunch(trainlaunch_here: Runs) -> Runs:
    """Run the command line inside this process."""
    return trainlaunch_here
