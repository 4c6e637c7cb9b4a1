"""What is taken out of a quoted line: values and their lines, longest first, and no word that is no secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from trainlaunch.run.base.secret_values import RedactedStream, Redactor, values_here

from tests.jobs import plan_with


def redactor(folder: Path, patch: pytest.MonkeyPatch, **values: str) -> Redactor:
    """Return the redactor of a job with these secrets."""
    for name, value in values.items():
        patch.setenv(name, value)
    return Redactor(values_here(plan_with(folder, secrets={name: {"env": name} for name in values})).items())


@pytest.mark.parametrize(
    ("values", "line", "expected"),
    [
        ({"T": "hunter22"}, "login hunter22 failed: hunter22!", "login [secret T] failed: [secret T]!"),
        ({"T": "abc"}, "abc is too short to be taken out", "abc is too short to be taken out"),
        ({"A": "abcd", "B": "abcdefgh"}, "abcdefgh abcd", "[secret B] [secret A]"),
        ({"K": "-----BEGIN KEY-----\nMIIEvQIBADAN\nend\n"}, "got MIIEvQIBADAN at the end", "got [secret K] at the end"),
        ({"T": "hunter22\n"}, "hunter22", "[secret T]"),
        ({}, "nothing to hide", "nothing to hide"),
    ],
)
def test_a_quoted_line_has_names_for_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, str], line: str, expected: str
) -> None:
    """A job prints a value of several lines line by line."""
    assert redactor(tmp_path, monkeypatch, **values)(line) == expected


WORDS = [("A", "abcd"), ("B", "abcdefgh"), ("K", "first line\nsecond line\n"), ("X", "cdxyz")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abcdefgh abcd", "[secret B] [secret A]"),
        ("abcdef", "[secret A]ef"),
        ("ababcdxyz", "ab[secret A]xyz"),
        ("abc", "abc"),
        ("first line", "[secret K]"),
        ("a first line\nsecond line!", "a [secret K]!"),
        ("nothing", "nothing"),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_a_stream_is_redacted_wherever_it_is_cut(text: str, expected: str, size: int) -> None:
    """A pipe gives pieces of any length."""
    stream, data = RedactedStream(WORDS), text.encode()
    pieces = [stream.feed(data[start : start + size]) for start in range(0, len(data), size)]
    assert b"".join([*pieces, stream.end()]).decode() == expected


def test_only_what_may_become_a_value_is_held() -> None:
    """Everything else is shown as it comes."""
    assert RedactedStream(WORDS).feed(b"loss 0.1\n") == b"loss 0.1\n"
    assert RedactedStream(()).feed(b"abcd") == b"abcd"
    stream = RedactedStream(WORDS)
    assert [stream.feed(each) for each in (b"10 % a", b"ll")] == [b"10 % ", b"all"]


def test_a_value_is_found_as_python_and_json_quote_it() -> None:
    """A traceback has the repr of what a call was given."""
    key = "a'b\\c\"d"
    text = f"ValueError: {key!r} {json.dumps({'key': key})}"
    assert Redactor([("K", key)])(text) == 'ValueError: \'[secret K]\' {"key": "[secret K]"}'


def test_a_clusters_secrets_are_not_looked_for_here(tmp_path: Path) -> None:
    """They are keys of a Secret; this machine may know nothing of them."""
    limits = {"cpus": 1, "memory": "1Gi"}
    plan = plan_with(tmp_path, "kubernetes", secrets={"T": {"kubernetes": "a/b"}}, resources=limits)
    assert Redactor(values_here(plan).items())("a/b") == "a/b"
