"""What else `up`, Compose and the other verbs do on Docker, and on Podman by the code that Docker's tests run."""

from __future__ import annotations

import pytest

from tests.run.podman.test_podman_compose import names  # noqa: F401 - a fixture
from tests.run.test_compose import (  # noqa: F401 - collected here, where the fixtures give Podman
    make_nodes,
    test_a_second_ctrl_c_kills_every_node,
    test_a_secret_is_in_no_output_label_file_or_process_list,
    test_ctrl_c_stops_every_node_once,
    test_down_leaves_nothing_of_the_job_and_all_else,
    test_of_two_ups_exactly_one_wins,
    test_the_first_node_to_fail_ends_the_job,
)
from tests.run.test_lost_engine import (  # noqa: F401
    start_soon,
    test_what_comes_while_a_connection_is_silent_is_shown,
)
from tests.run.test_preflight_line import test_a_job_that_never_ran_is_125_for_every_verb  # noqa: F401
from tests.run.test_probe_ends import (  # noqa: F401
    test_a_probe_beside_the_job_leaves_it_alone,
    test_a_probe_leaves_no_container,
    test_an_interrupted_probe_leaves_no_container,
)
from tests.run.test_stall import _looks_often, test_a_long_evaluation_is_no_stall  # noqa: F401
from tests.run.test_up import (  # noqa: F401
    test_a_removed_container_ends_up_and_its_attempts,
    test_a_second_ctrl_c_kills,
    test_a_secret_arrives_and_is_shown_nowhere,
    test_attempts_are_new_containers,
)
from tests.run.test_up import test_of_two_ups_exactly_one_wins as test_of_two_ups_of_one_container_exactly_one_wins  # noqa: F401
from tests.run.test_verbs import test_logs_and_wait_give_output_and_code  # noqa: F401

pytestmark = [pytest.mark.docker, pytest.mark.long, pytest.mark.usefixtures("compose", "names")]
