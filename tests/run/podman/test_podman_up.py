"""What `up` and the other verbs do on Docker, they do on Podman: the same tests, on its service."""

from __future__ import annotations

import pytest

from tests.run.test_lost_engine import test_what_comes_while_a_connection_is_silent_is_shown  # noqa: F401
from tests.run.test_probe_ends import (  # noqa: F401
    test_a_probe_beside_the_job_leaves_it_alone,
    test_a_probe_leaves_no_container,
    test_an_interrupted_probe_leaves_no_container,
)
from tests.run.test_stall import (  # noqa: F401 - where no timers of systemd are, `up` makes the checks itself
    test_a_keeper_stops_a_detached_run,
    test_a_long_evaluation_is_no_stall,
)
from tests.run.test_up import (  # noqa: F401 - collected here, where the fixtures give Podman
    test_a_command_that_can_not_start_is_told,
    test_a_removed_container_ends_up_and_its_attempts,
    test_a_second_ctrl_c_kills,
    test_a_secret_arrives_and_is_shown_nowhere,
    test_attempts_are_new_containers,
    test_of_two_ups_exactly_one_wins,
    test_out_of_memory_is_named,
    test_the_jobs_streams_and_code_are_ups,
)
from tests.run.test_verbs import (  # noqa: F401
    test_a_container_that_never_started_has_no_code,
    test_down_removes_the_job_and_nothing_else,
    test_logs_and_wait_give_output_and_code,
    test_status_of_a_running_job,
)

pytestmark = pytest.mark.docker
