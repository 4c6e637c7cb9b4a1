"""What the health check says of a real container's /dev/shm, under each shell."""

from __future__ import annotations

import pytest
from trainlaunch.container.preflight import health_text
from trainlaunch.units import MIB

from tests.conftest import Runs
from tests.preflight.containers import SHELLS
from tests.preflight.plans import plan

pytestmark = pytest.mark.docker

TEXT = health_text(plan(ranks_per_container=2))
NEED = 2 * plan().shm.need


def checked(docker_run: Runs, image: str, *flags: str, before: str = ":") -> list[tuple[int, str]]:
    """Return exit code and output of the check under each shell, in one container, after some shell text."""
    runs = "; ".join(f'{" ".join(words)} -c "$0"; echo "$?"' for words in SHELLS.values())
    done = docker_run(*flags, image, "sh", "-c", f"{before}\n{runs}", TEXT)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == 2 * len(SHELLS), "one line each, and its exit code"
    return [(int(code), text) for text, code in zip(lines[::2], lines[1::2], strict=True)]


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (("--ipc=none",), "/dev/shm is gone"),
        (("--shm-size=36m",), f"below the planned {NEED}"),
        (("--tmpfs=/dev/shm:ro,size=64m",), "can't make files in /dev/shm"),
        (("--tmpfs=/dev/shm:size=64m,mode=700", "--user=1000"), "uid 1000 can't make files in /dev/shm"),
        (("--mount=type=bind,src=/var/tmp,dst=/dev/shm",), "not tmpfs"),
    ],
    ids=["gone", "small", "read-only", "other-uid", "disk"],
)
def test_unplanned_shm_is_unhealthy(docker_run: Runs, base_image: str, flags: tuple[str, ...], reason: str) -> None:
    """One sentence says why."""
    for code, text in checked(docker_run, base_image, *flags):
        assert code == 1
        assert text.startswith("unhealthy: ")
        assert reason in text


@pytest.mark.parametrize("flags", [(), ("--read-only",), ("--user=1000",)], ids=["root", "read-only", "user"])
def test_planned_shm_is_healthy_and_described(docker_run: Runs, base_image: str, flags: tuple[str, ...]) -> None:
    """In bytes, for `status` to read; two ranks with two workers each are planned."""
    for code, text in checked(docker_run, base_image, "--shm-size=64m", *flags):
        assert (code, text.split()[0], text.split()[3:]) == (0, "shm", [f"size={64 * MIB}", "workers=0/4"])


def test_peak_is_kept_and_a_full_shm_is_healthy(docker_run: Runs, base_image: str) -> None:
    """A full prefetch queue is idle, not ill; the peak's page is taken early, so that a full /dev/shm still has it."""
    full = 'dash -c "$0" >/tmp/first; head -c 64M /dev/zero >/dev/shm/torch_x 2>/dev/null'
    for code, text in checked(docker_run, base_image, "--shm-size=64m", before=full):
        assert (code, text) == (0, f"shm used={64 * MIB} peak={64 * MIB} size={64 * MIB} workers=0/4")
    drained = f'{full}; busybox sh -c "$0" >/tmp/second; rm /dev/shm/torch_x'
    for code, text in checked(docker_run, base_image, "--shm-size=64m", before=drained):
        assert (code, text) == (0, f"shm used=4096 peak={64 * MIB} size={64 * MIB} workers=0/4")


def test_unlimited_shm_has_no_use_to_tell(docker_run: Runs, base_image: str) -> None:
    """The kernel counts no blocks of a tmpfs with size=0."""
    for code, text in checked(docker_run, base_image, "--tmpfs=/dev/shm:size=0"):
        assert (code, text) == (0, "shm used=unknown peak=unknown size=unlimited workers=0/4")


def test_garbage_in_the_peak_file_counts_as_none(docker_run: Runs, base_image: str) -> None:
    """The job may write there, too."""
    for code, text in checked(
        docker_run,
        base_image,
        "--shm-size=64m",
        before="mkdir -m 700 /dev/shm/.trainlaunch; echo 08x >/dev/shm/.trainlaunch/peak",
    ):
        assert (code, text) == (0, f"shm used=4096 peak=4096 size={64 * MIB} workers=0/4")


def test_running_workers_are_counted(docker_run: Runs, base_image: str) -> None:
    """By the name that torch gives them."""
    two = "cp /bin/sleep /tmp/pt_data_worker; /tmp/pt_data_worker 60 & /tmp/pt_data_worker 60 & sleep 0.3"
    for code, text in checked(docker_run, base_image, "--shm-size=64m", before=two):
        assert (code, text.split()[-1]) == (0, "workers=2/4")


def test_check_leaves_no_file_but_the_peak(docker_run: Runs, base_image: str) -> None:
    """And the preflight doesn't take that one for a leftover."""
    done = docker_run(
        "--shm-size=64m", base_image, "sh", "-c", 'sh -c "$0" >/tmp/x; cd /dev/shm; find . -mindepth 1', TEXT
    )
    assert done.stdout.split() == ["./.trainlaunch", "./.trainlaunch/peak"]


def test_an_inherited_shellopts_changes_nothing(docker_run: Runs, base_image: str) -> None:
    """Where the image's sh is bash, it takes options from the environment: errexit would end the check at a read."""
    flags = ("--shm-size=64m", "--env=SHELLOPTS=errexit:noglob:nounset")
    done = docker_run(*flags, base_image, "bash", "-c", TEXT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("shm used=")
