"""The wrapper behind an image's own ENTRYPOINT: ENTRYPOINT, preflight, command."""

from __future__ import annotations

import pytest
from trainlaunch.container.container import container_of

from tests.preflight.containers import StartsPrograms, program
from tests.preflight.plans import plan

pytestmark = pytest.mark.docker


@pytest.mark.parametrize(
    ("entrypoint", "printed"),
    [
        ([], "trained\n"),
        (["/usr/bin/env", "SET_BY=entrypoint"], "entrypoint\ntrained\n"),
        (["/bin/sh", "-c", 'echo first; exec "$@"', "entry"], "first\ntrained\n"),
        (["/bin/bash", "-c", 'echo first; "$@"; echo "then $?"', "entry"], "first\ntrained\nthen 0\n"),
    ],
    ids=["dropped", "env", "exec", "child"],
)
def test_entrypoint_stays_in_front(start_programs: StartsPrograms, entrypoint: list[str], printed: str) -> None:
    """Whether it execs what follows or starts it as a child."""
    command = ["sh", "-c", '[ -z "${SET_BY-}" ] || echo "$SET_BY"; echo trained']
    container = container_of(plan(image_entrypoint=entrypoint, command=command))
    (ended,) = start_programs(
        [program(*container.entrypoint, *container.args, **dict(container.env))], "--shm-size=64m"
    )
    assert (ended.code, ended.out) == (0, printed), ended.err
    assert "trainlaunch: preflight passed: " in ended.err
