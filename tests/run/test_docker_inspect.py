"""The engine's description of a container is read as it is, on every Python that we support."""

from __future__ import annotations

from typing import Any

import pytest
from trainlaunch.run.base.clock import seconds
from trainlaunch.run.base.shm_reading import read_from_health
from trainlaunch.run.docker.containers import alien_label, started_from


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        ("1970-01-01T00:01:00Z", 60.0),
        ("1970-01-01T00:01:00.5Z", 60.5),
        ("1970-01-01T00:01:00.123456789Z", 60.123456),
        ("1970-01-01T01:01:00.25+01:00", 60.25),
        ("0001-01-01T00:00:00Z", 0.0),
    ],
)
def test_the_engines_times_are_seconds(timestamp: str, expected: float) -> None:
    """Any number of digits, any zone; the year 1 means never."""
    assert seconds(timestamp) == pytest.approx(expected, abs=1e-6)


def described(state: dict[str, Any], labels: dict[str, str] | None = None, **host: Any) -> dict[str, Any]:
    """Return what `docker inspect` says, as far as it is read."""
    never = "0001-01-01T00:00:00Z"
    base = {"Status": "running", "ExitCode": 0, "StartedAt": never, "FinishedAt": never}
    return {
        "Id": "abc", "Name": "/digits", "Created": never, "State": {**base, **state}, "HostConfig": host,
        "Config": {"Labels": labels},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("state", "status", "code", "ended"),
    [
        ({"Status": "created"}, "created", None, False),
        ({"Status": "created", "ExitCode": 127, "Error": "no such file"}, "created", None, True),
        ({"Status": "running"}, "running", None, False),
        ({"Status": "paused"}, "running", None, False),
        ({"Status": "removing"}, "running", None, False),
        ({"Status": "exited", "ExitCode": 3}, "exited", 3, True),
        ({"Status": "dead", "ExitCode": 137}, "exited", 137, True),
    ],
)
def test_states_are_three(state: dict[str, Any], status: str, code: int | None, ended: bool) -> None:
    """A container that never ran has no exit code, whatever the engine writes there."""
    found = started_from(described(state))
    assert (found.status, found.exit_code, found.ended) == (status, code, ended)


def test_health_is_that_of_a_running_container_only() -> None:
    """The engine turns each container that ends into an unhealthy one; what its last whole check said stays."""
    checks = [{"ExitCode": 0, "Output": "shm used=1\n"}, {"ExitCode": -1, "Output": "the container is not running"}]
    health = {"Health": {"Status": "unhealthy", "Log": checks}}
    ended = started_from(described({"Status": "exited", **health}))
    assert (ended.health, ended.health_output) == ("", "shm used=1")
    assert started_from(described({"Status": "running", **health})).health == "unhealthy"


@pytest.mark.parametrize("ipc", ["", "private", "shareable"])
def test_shm_size_is_in_effect_with_an_ipc_namespace_of_its_own(ipc: str) -> None:
    """The three ways in which the engine makes /dev/shm."""
    assert started_from(described({}, IpcMode=ipc, ShmSize=67108864)).private_shm


@pytest.mark.parametrize("ipc", ["host", "container:abc", "none"])
def test_shm_size_is_not_believed_with_another_ipc_namespace(ipc: str) -> None:
    """The engine reports 64 MiB there, and no process sees them."""
    assert not started_from(described({}, IpcMode=ipc, ShmSize=67108864)).private_shm


def test_containers_of_rendered_texts_have_no_run() -> None:
    """No run label is no error, and a label that is no number is not believed."""
    found = started_from(described({}, {"dev.trainlaunch.job": "digits", "dev.trainlaunch.shm-need": "much"}))
    assert (found.job, found.run, found.attempt, found.planned.need) == ("digits", "", 1, None)
    assert started_from(described({}, None)).job == ""


@pytest.mark.parametrize(
    ("key", "value", "fits"),
    [
        ("job", "digits", True),
        ("job", "", False),
        ("job", "a\n::error::", False),
        ("attempt", "2", True),
        ("attempt", "9" * 5_000, False),
        ("node", "٣", False),
        ("run", "3f9a2c11", True),
        ("run", "../x", False),
        ("owner", "any \x1b[31m text", True),
    ],
)
def test_a_label_that_nothing_of_ours_wrote_is_named(key: str, value: str, fits: bool) -> None:
    """Cut after a few characters, with its control characters as escapes; what says whose it is may say anything."""
    why = alien_label(described({}, {f"dev.trainlaunch.{key}": value}))
    assert (why == "") == fits
    assert len(why) < 120
    assert why.isprintable()


def test_health_text_of_thousands_of_digits_is_no_reading() -> None:
    """Python refuses to read such a number, and `status` with it."""
    assert read_from_health(f"used={'1' * 5_000} peak=1 size=1") is None
    found = read_from_health(f"used=1 peak={'1' * 5_000} size=1 workers={'2' * 5_000}")
    assert found is not None
    assert (found.used, found.peak, found.workers) == (1, 1, None)
