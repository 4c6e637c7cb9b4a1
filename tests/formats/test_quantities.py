"""Quantities are what the API server's own parser makes of them: the table of measurements, and its corners."""

from __future__ import annotations

import pytest
from trainlaunch.formats.quantities import MAX_QUANTITY, parse_milli_quantity, parse_quantity, quantity_text

MEASURED = [
    ("2G", 2_000_000_000),
    ("2g", None),
    ("2gb", None),
    ("2GB", None),
    ("2GiB", None),
    ("2Gi", 2_147_483_648),
    ("2048m", 3),
    ("500m", 1),
    ("1.5g", None),
    ("1.5Gi", 1_610_612_736),
    ("1536Mi", 1_610_612_736),
    ("2147483648", 2_147_483_648),
    ("0", 0),
    ("-1", -1),
    ("2e9", 2_000_000_000),
    ("", None),
    ("2 g", None),
    ("2 Gi", None),
    ("1_000", None),
    ("2_000m", None),
    ("K", None),
    ("2K", None),
    ("2k", 2000),
    ("2E", 2 * 10**18),
    ("2E3", 2000),
    ("9Ei", MAX_QUANTITY),
    ("99999999999999999999", MAX_QUANTITY),
    ("1.1Gi", 1_181_116_007),
    ("1181116006400m", 1_181_116_007),
    ("2899102924800m", 2_899_102_925),
]


@pytest.mark.parametrize(("text", "size"), MEASURED)
def test_a_spelling_means_what_was_measured(text: str, size: int | None) -> None:
    """Kubernetes' own functions gave these; what they refuse is None."""
    assert parse_quantity(text) == size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        *(
            ("1.", 1),
            (".5", 1),
            (".5Gi", 2**29),
            ("+3", 3),
            ("007", 7),
            ("1e-3", 1),
            ("1E+3", 1000),
            ("1n", 1),
            ("0n", 0),
        ),
        *(("1Ki", 1024), ("1Pi", 2**50), ("1P", 10**15), ("1u", 1), ("1M", 10**6), ("0.0000001Ti", 109_952)),
        *(
            ("2e", None),
            ("2e+", None),
            ("1e3Gi", None),
            ("1Mi3", None),
            ("1..5", None),
            ("1.5.2", None),
            ("0x10", None),
        ),
        *(("1m5", None), ("Infinity", None), ("NaN", None), ("1mi", None), ("1KI", None), ("١", None), ("1\n", None)),
    ],
)
def test_corners_of_the_parser(text: str, size: int | None) -> None:
    """Digits may be missing on one side of the point; a suffix is one of the list, to the letter."""
    assert parse_quantity(text) == size


@pytest.mark.parametrize("text", ["1e999999999", "9" * 99, "1" + "0" * 90 + "E"])
def test_what_no_machine_has_is_the_largest(text: str) -> None:
    """No text makes the reader compute for long."""
    assert parse_quantity(text) == MAX_QUANTITY
    assert parse_quantity(text.replace("1e", "0e")) == (0 if text.startswith("1e") else MAX_QUANTITY)


def test_a_text_without_end_is_none() -> None:
    """A number of more than a hundred characters is nobody's."""
    assert parse_quantity("1" * 101) is None
    assert parse_quantity("1e-999999999") == 1


@pytest.mark.parametrize(
    ("text", "milli"),
    [("4", 4000), ("1.5", 1500), ("500m", 500), ("0.0001", 1), ("1e-3", 1), ("2k", 2_000_000), ("4c", None)],
)
def test_cpus_are_thousandths(text: str, milli: int | None) -> None:
    """Less than one is rounded up to one."""
    assert parse_milli_quantity(text) == milli


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.5, "2.5"), (1e21, "1e+21"), (16, "16"), (" 2Gi ", "2Gi"), (True, None), (None, None), ([], None), ("", "")],
)
def test_the_parser_gets_numbers_by_their_text(value: object, text: str | None) -> None:
    """YAML's number, or a string without the blanks around it."""
    assert quantity_text(value) == text
