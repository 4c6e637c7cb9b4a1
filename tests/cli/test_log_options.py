"""`logs --tail --since`: what users of docker logs and kubectl logs write is read, everything else is one error."""

from __future__ import annotations

import argparse
import time

import pytest
from trainlaunch.cli.arguments.verb_table import add_arguments
from trainlaunch.cli.verbs.logs import PART_ARGUMENTS, part_of
from trainlaunch.errors import UsageError
from trainlaunch.run.base.clock import SECOND, nanoseconds
from trainlaunch.run.base.log_position import WHOLE, LogPart

from tests.conftest import Runs


def asked(*words: str) -> LogPart:
    """Return the part that the options ask for."""
    parser = argparse.ArgumentParser()
    add_arguments(parser, PART_ARGUMENTS)
    return part_of(parser.parse_args(words))


def test_without_options_it_is_the_whole_log() -> None:
    """As is `all`."""
    assert asked() == asked("--tail", "all") == WHOLE
    assert asked("--tail", "0", "--timestamps") == LogPart(tail=0, timestamps=True)


@pytest.mark.parametrize(
    ("text", "ago"),
    [("10m", 600), ("1h30m", 5400), ("1.5h", 5400), ("2d", 172_800), ("90s", 90), ("1500ms", 1.5), ("0s", 0)],
)
def test_a_duration_counts_back_from_now(text: str, ago: float) -> None:
    """Go's, as docker and kubectl read them, and days."""
    since = asked("--since", text).since
    assert since is not None
    assert abs(time.time() - since / SECOND - ago) < 5


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31T08:00:00Z", "2026-01-31T08:00:00Z"),
        ("2026-01-31T08:00:00.123456789Z", "2026-01-31T08:00:00.123456789Z"),
        ("2026-01-31T10:00:00+02:00", "2026-01-31T08:00:00Z"),
        ("2026-01-31T08:00:00.5", "2026-01-31T07:00:00.5Z"),
        ("2026-01-31T08:00", "2026-01-31T07:00:00Z"),
        ("2026-01-31", "2026-01-30T23:00:00Z"),
        ("1769846400", "2026-01-31T08:00:00Z"),
        ("1769846400.25", "2026-01-31T08:00:00.25Z"),
    ],
)
def test_a_time_is_exact(monkeypatch: pytest.MonkeyPatch, text: str, moment: str) -> None:
    """To the nanosecond, so that a copied time gives its own line; one without a zone is this machine's."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert asked("--since", text).since == nanoseconds(moment)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "words",
    [
        ("--tail", "ten"), ("--tail", "-5"), ("--tail", ""), ("--tail", "1e3"), ("--since", ""), ("--since", "10x"),
        ("--since", "2026-13-01"), ("--since", "yesterday"), ("--since", "9" * 5_000), ("--since", "1h" * 5_000 + "x"),
    ],
)  # fmt: skip
def test_what_is_neither_is_usage(words: tuple[str, str]) -> None:
    """With what to write, in bounded time."""
    begun = time.monotonic()
    with pytest.raises(UsageError) as refused:
        asked(f"{words[0]}={words[1]}")
    assert time.monotonic() - begun < 1
    (one,) = refused.value.diagnostics
    assert (one.code, words[0] in one.message, words[0] in one.fix) == ("TL118", True, True)


def test_one_attempt_and_all_that_come_exclude_each_other(trainlaunch: Runs) -> None:
    """`--follow` goes on to the last attempt."""
    for words in (("-f", "--attempt", "1"), ("--attempt", "0"), ("--attempt", "x")):
        done = trainlaunch("logs", "job", *words)
        assert (done.returncode, "--attempt" in done.stderr) == (2, True)
