"""An out-of-memory kill that an engine didn't note is found in the kernel's log."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainlaunch.run.podman.log import killed_for_memory

ID = "dfa9cd0458999244cbdf89d055dc365c14b3fa1d1df41ff6f6a9d02a8707ee18"
KILLED = (
    "6,1201,11801033871,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,"
    f"oom_memcg=/libpod_parent/libpod-{ID},task_memcg=/libpod_parent/libpod-{ID},task=python3,pid=705,uid=0\n"
)


@pytest.mark.parametrize(
    ("record", "killed"),
    [
        (KILLED, True),
        (KILLED.replace("CONSTRAINT_MEMCG", "CONSTRAINT_NONE"), False),
        (KILLED.replace(f"libpod-{ID}", "libpod-0000"), False),
        (KILLED.replace("oom_memcg", "memcg"), False),
        ("", False),
    ],
    ids=["its own limit", "the host's memory", "another container", "another event", "nothing"],
)
def test_only_a_kill_at_the_containers_own_limit_counts(tmp_path: Path, record: str, killed: bool) -> None:
    """The cgroup whose limit was met carries the container's id."""
    log = tmp_path / "kmsg"
    log.write_text(record)
    assert killed_for_memory(ID, log) is killed


def test_a_log_that_can_not_be_read_tells_nothing(tmp_path: Path) -> None:
    """It is root's."""
    assert not killed_for_memory(ID, tmp_path / "kmsg")
