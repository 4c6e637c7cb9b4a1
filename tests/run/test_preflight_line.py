"""A run whose preflight never spoke is never 0; a good one never loses its 0."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from trainlaunch.container.preflight import SCRIPT_MARK, preflight_behind_entrypoint, preflight_text
from trainlaunch.run.base.run_evidence import NEVER_SPOKE, PREFLIGHT, PreflightLine, lacks_preflight

from tests.conftest import Runs
from tests.run.conftest import containers_of, docker

AT = "2026-03-04T05:06:07.5Z"
STARTED = 1772600766.0  # a second and a half before
SPOKE = (True, f"{AT} ".encode() + PREFLIGHT + b"passed: all\n")
LINE = (False, f"{AT} serving\n".encode())
SWALLOWS = ["/bin/echo", "serving"]


@pytest.mark.parametrize(
    ("pieces", "started", "finished", "lacks"),
    [
        ([LINE], STARTED, STARTED + 3600, True),
        ([LINE, SPOKE], STARTED, STARTED + 3600, False),
        ([LINE], STARTED - 60, STARTED, False),
        ([], STARTED, STARTED + 1, True),
        ([], STARTED, STARTED + 3600, False),
        ([(False, b"no time at all")], STARTED, STARTED + 1, False),
    ],
    ids=["its-own-lines", "spoke", "beginning-gone", "brief-and-empty", "emptied", "garbled"],
)
def test_a_line_is_missed_only_where_the_log_begins(
    pieces: list[tuple[bool, bytes]], started: float, finished: float, *, lacks: bool
) -> None:
    """What was rotated or emptied proves nothing."""
    assert lacks_preflight(pieces, started, finished) is lacks


def test_a_line_in_two_pieces_is_one() -> None:
    """Each stream by itself: the other's bytes may come in between."""
    line = PreflightLine()
    line.take(True, b"entry\n" + PREFLIGHT[:9])
    line.take(False, b"in between\n")
    assert not line.seen
    line.take(True, PREFLIGHT[9:])
    assert line.seen


def test_a_front_is_told_from_the_wrappers_own_shell() -> None:
    """By the wrapper's constant first words."""
    text = preflight_text()
    assert text.startswith(SCRIPT_MARK)
    assert not preflight_behind_entrypoint(["/bin/sh", "-c", text, "trainlaunch", "python"])
    assert preflight_behind_entrypoint(["/front", "/bin/sh", "-c", text, "trainlaunch", "python"])
    assert not preflight_behind_entrypoint(["/bin/sh", "-c", "echo hi"]), "no wrapper of ours"


@pytest.mark.docker
@pytest.mark.parametrize("target", ["docker", pytest.param("compose", marks=pytest.mark.long)])
def test_a_job_that_never_ran_is_125_for_every_verb(
    trainlaunch: Runs, make_job: Callable[..., Path], job_name: str, tmp_path: Path, compose: str, target: str
) -> None:
    """For who kept it, and for who has only the engine's log."""
    job = make_job(image_entrypoint=SWALLOWS, command=["echo", "trained"], target=target)
    done = trainlaunch("up", str(job))
    assert (done.returncode, done.stdout[:8]) == (125, "serving "), done.stderr
    assert NEVER_SPOKE in done.stderr
    for state in ({}, {"XDG_STATE_HOME": str(tmp_path / "another-machine")}):
        for verb in (["wait"], ["logs", "-f"], ["attach"]):
            done = trainlaunch(*verb, job_name, "--target", target, env=state)
            assert (done.returncode, NEVER_SPOKE in done.stderr) == (125, True), (verb, done.stderr)
        status = trainlaunch("status", job_name, "--target", target, env=state)
        assert (status.returncode, NEVER_SPOKE in status.stdout) == (1, True)


@pytest.mark.docker
def test_a_good_run_whose_log_is_gone_stays_0(
    trainlaunch: Runs, make_job: Callable[..., Path], job_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Emptied under the engine, as disks are saved in a hurry; also where nobody here saw it run."""
    monkeypatch.setattr("trainlaunch.run.base.run_evidence.BRIEF_SECONDS", 1.0)
    made = make_job(image_entrypoint=["/usr/bin/env"], command=["sh", "-c", "sleep 1.5; echo trained"])
    assert trainlaunch("up", str(made)).returncode == 0
    (container,) = containers_of(job_name)
    path = docker("inspect", "--format", "{{.LogPath}}", container).strip()
    subprocess.run(["truncate", "--size=0", path], check=True)
    for state in ({}, {"XDG_STATE_HOME": str(tmp_path / "another-machine")}):
        assert trainlaunch("wait", job_name, env=state).returncode == 0
        assert trainlaunch("status", job_name, env=state).returncode == 0
