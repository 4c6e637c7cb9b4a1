"""What the health check says of a real container's /dev/shm, under each shell."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from trainlaunch.units import MIB

from tests.preflight.containers import SHELLS, StartsPrograms, program
from tests.preflight.plans import health_alone, plan

pytestmark = pytest.mark.docker

TEXT = health_alone(plan(ranks_per_container=2))
NEED = 2 * plan().shm.need


Checked = Callable[..., list[tuple[int, str]]]


@pytest.fixture
def checked(start_programs: StartsPrograms) -> Checked:
    """Return exit code and output of the check under each shell, in one container, after some shell text."""
    return partial(_checked, start_programs)


def _checked(start_programs: StartsPrograms, *flags: str, before: str = ":", user: int = 0) -> list[tuple[int, str]]:
    runs = "; ".join(f'{" ".join(words)} -c "$0"; echo "$?"' for words in SHELLS.values())
    (ended,) = start_programs([program("sh", "-c", f"{before}\n{runs}", TEXT, user=user)], *flags)
    assert ended.err == ""
    lines = ended.out.splitlines()
    assert len(lines) == 2 * len(SHELLS), "one line each, and its exit code"
    return [(int(code), text) for text, code in zip(lines[::2], lines[1::2], strict=True)]


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (("--ipc=none",), "/dev/shm is gone"),
        (("--shm-size=36m",), f"below the planned {NEED}"),
        (("--tmpfs=/dev/shm:ro,size=64m",), "can't make files in /dev/shm"),
        (("--tmpfs=/dev/shm:size=64m,mode=700",), "uid 1000 can't make files in /dev/shm"),
        (("--mount=type=bind,src=/var/tmp,dst=/dev/shm",), "not tmpfs"),
    ],
    ids=["gone", "small", "read-only", "other-uid", "disk"],
)
def test_unplanned_shm_is_unhealthy(checked: Checked, flags: tuple[str, ...], reason: str) -> None:
    """One sentence says why."""
    for code, text in checked(*flags, user=1000 if "uid" in reason else 0):
        assert code == 1
        assert text.startswith("unhealthy: ")
        assert reason in text


@pytest.mark.parametrize(
    ("flags", "user"), [((), 0), (("--read-only",), 0), ((), 1000)], ids=["root", "read-only", "user"]
)
def test_planned_shm_is_healthy_and_described(checked: Checked, flags: tuple[str, ...], user: int) -> None:
    """In bytes, for `status` to read; two ranks with two workers each are planned."""
    for code, text in checked("--shm-size=64m", *flags, user=user):
        assert (code, text.split()[0], text.split()[3:]) == (0, "shm", [f"size={64 * MIB}", "workers=0/4"])


def test_peak_is_kept_and_a_full_shm_is_healthy(checked: Checked) -> None:
    """A full prefetch queue is idle, not ill; the peak's page is taken early, so that a full /dev/shm still has it."""
    full = 'dash -c "$0" >/tmp/first; head -c 64M /dev/zero >/dev/shm/torch_x 2>/dev/null'
    for code, text in checked("--shm-size=64m", before=full):
        assert (code, text) == (0, f"shm used={64 * MIB} peak={64 * MIB} size={64 * MIB} workers=0/4")
    drained = f'{full}; busybox sh -c "$0" >/tmp/second; rm /dev/shm/torch_x'
    for code, text in checked("--shm-size=64m", before=drained):
        assert (code, text) == (0, f"shm used=4096 peak={64 * MIB} size={64 * MIB} workers=0/4")


def test_unlimited_shm_has_no_use_to_tell(checked: Checked) -> None:
    """The kernel counts no blocks of a tmpfs with size=0."""
    for code, text in checked("--tmpfs=/dev/shm:size=0"):
        assert (code, text) == (0, "shm used=unknown peak=unknown size=unlimited workers=0/4")


def test_garbage_in_the_peak_file_counts_as_none(checked: Checked) -> None:
    """The job may write there, too."""
    for code, text in checked(
        "--shm-size=64m",
        before="mkdir -m 700 /dev/shm/.trainlaunch; echo 08x >/dev/shm/.trainlaunch/peak",
    ):
        assert (code, text) == (0, f"shm used=4096 peak=4096 size={64 * MIB} workers=0/4")


def test_running_workers_are_counted(checked: Checked) -> None:
    """By the name that torch gives them."""
    two = (
        "cp /bin/sleep /tmp/pt_data_worker; /tmp/pt_data_worker 60 & /tmp/pt_data_worker 60 & "
        'until [ "$(cat /proc/[0-9]*/comm 2>/dev/null | grep -c pt_data_worker)" = 2 ]; do sleep 0.05; done'
    )
    for code, text in checked("--shm-size=64m", before=two):
        assert (code, text.split()[-1]) == (0, "workers=2/4")


def test_check_leaves_no_file_but_the_peak(start_programs: StartsPrograms) -> None:
    """And the preflight doesn't take that one for a leftover."""
    check = program("sh", "-c", 'sh -c "$0" >/tmp/x; cd /dev/shm; find . -mindepth 1', TEXT)
    (ended,) = start_programs([check], "--shm-size=64m")
    assert ended.out.split() == ["./.trainlaunch", "./.trainlaunch/peak"]


def test_an_inherited_shellopts_changes_nothing(start_programs: StartsPrograms) -> None:
    """Where the image's sh is bash, it takes options from the environment: errexit would end the check at a read."""
    check = program("bash", "-c", TEXT, SHELLOPTS="errexit:noglob:nounset")
    (ended,) = start_programs([check], "--shm-size=64m")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("shm used=")
