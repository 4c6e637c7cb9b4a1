"""What `up` and the other verbs do on Docker, they do on Podman: the same tests, on its service.

By default those whose subject Podman does in a way of its own; the rest in test_podman_wholly.py.
"""

from __future__ import annotations

import pytest

from tests.run.test_stall import (  # noqa: F401 - where no timers of systemd are, `up` makes the checks itself
    test_a_keeper_stops_a_detached_run,
)
from tests.run.test_up import (  # noqa: F401 - collected here, where the fixtures give Podman
    test_a_command_that_can_not_start_is_told,
    test_out_of_memory_is_named,
    test_the_jobs_streams_and_code_are_ups,
)
from tests.run.test_verbs import (  # noqa: F401
    test_a_container_that_never_started_has_no_code,
    test_down_removes_the_job_and_nothing_else,
    test_status_of_a_running_job,
)

pytestmark = pytest.mark.docker
