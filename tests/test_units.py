"""Sizes, CPUs and durations: one reading each, and the spellings with two are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainlaunch.units import (
    UnreadableValue,
    counted,
    format_cpus,
    format_duration,
    format_size,
    parse_cpus,
    parse_duration,
    parse_size,
    round_up,
)

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2g", 2 * GIB),
        ("2gb", 2 * GIB),
        ("2Gi", 2 * GIB),
        ("512m", 512 * 2**20),
        ("512mb", 512 * 2**20),
        ("64k", 65536),
        ("1t", 1024 * GIB),
        ("1.5Gi", 1610612736),
        ("2147483648", 2147483648),
        ("0Mi", 0),
    ],
)
def test_one_reading_is_accepted(text: str, size: int) -> None:
    """Binary suffixes mean powers of 1024 in either spelling."""
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "readings"),
    [("8G", "8·10⁹"), ("8GB", "8·10⁹"), ("8M", "8·10⁶"), ("64MB", "64·10⁶"), ("2K", "2·10³"), ("1.5G", "1.5·10⁹")],
)
def test_two_readings_are_refused_with_both(text: str, readings: str) -> None:
    """Docker and Kubernetes read these differently, so the error names both and the value to type."""
    with pytest.raises(UnreadableValue, match=readings) as caught:
        parse_size(text)
    assert caught.value.ambiguous
    assert parse_size(caught.value.fix.removeprefix("write "))


@pytest.mark.parametrize(
    "text",
    ["8", "0", "64", "1048575", "2GiB", "", "g", "-1", "1e9", "0x10", "2 g", "1_000", "1.1Gi", "1.5", "٣g", "2Pi"],
)
def test_other_spellings_are_refused(text: str) -> None:
    """Bare integers under 1 MiB, fractions of a byte and foreign spellings are no sizes."""
    with pytest.raises(UnreadableValue):
        parse_size(text)


@given(st.integers(min_value=0, max_value=2**60))
def test_format_size_reads_back(size: int) -> None:
    """The exact spelling gives the same bytes, except bare integers under 1 MiB, which are refused on input."""
    text = format_size(size)
    if not text.isdigit() or size >= 2**20:
        assert parse_size(text) == size


@given(st.integers(min_value=1, max_value=10**6))
def test_format_cpus_reads_back(milli: int) -> None:
    """Thousandths survive the round trip."""
    assert parse_cpus(format_cpus(milli)) == milli


@given(st.integers(min_value=0, max_value=10**7))
def test_format_duration_reads_back(seconds: int) -> None:
    """Seconds survive the round trip."""
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize(("text", "milli"), [("4", 4000), ("1.5", 1500), ("500m", 500), ("0.25", 250)])
def test_cpus(text: str, milli: int) -> None:
    """Whole, fractional and milli spellings."""
    assert parse_cpus(text) == milli


@pytest.mark.parametrize("text", ["30", "", "1 m", "-5s", "5m3h", "1.5h"])
def test_durations_need_a_unit(text: str) -> None:
    """A bare number is refused, as Compose does."""
    with pytest.raises(UnreadableValue):
        parse_duration(text)


@given(st.integers(min_value=0, max_value=2**50), st.integers(min_value=1, max_value=2**21))
def test_round_up_is_the_smallest_multiple(size: int, step: int) -> None:
    """The result is a multiple, not below the size, and less than one step above."""
    up = round_up(size, step)
    assert up % step == 0
    assert size <= up < size + step


def test_a_number_and_its_noun_agree() -> None:
    """In every message, by this one function."""
    said = [counted(0, "file"), counted(1, "file"), counted("0.5", "CPU"), counted(2, "process"), counted(3, "epoch")]
    assert said == ["0 files", "1 file", "0.5 CPUs", "2 processes", "3 epochs"]
    assert counted(2, "batch") == "2 batches"
