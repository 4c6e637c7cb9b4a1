"""What a search leaves on Docker and by Compose it leaves on Podman: nothing."""

from __future__ import annotations

import pytest

from tests.run.test_tune_ends import (  # noqa: F401 - collected here, where the fixtures give Podman
    left,
    test_a_search_finds_keeps_and_leaves_nothing,
    test_a_setting_that_ends_the_script_is_none_to_take,
    test_a_signal_ends_a_search_and_leaves_nothing,
    tuned,
)

# Its containers are made, followed and ended as those of any run, which the contract shows.
pytestmark = [pytest.mark.docker, pytest.mark.long, pytest.mark.usefixtures("compose")]
