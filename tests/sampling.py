"""What stands for many in the default; `make full` takes them all, by the mark `long`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import pytest

A = TypeVar("A")
B = TypeVar("B")
_asked_for_long = False


def pytest_configure(config: pytest.Config) -> None:
    """Learn whether `-m` asks for what is long, before a module of tests is imported."""
    global _asked_for_long  # noqa: PLW0603 - known once for the whole process
    _asked_for_long = re.search(r"(?<!not )\blong\b", config.getoption("markexpr")) is not None


def examples(number: int) -> int:
    """Return how many examples hypothesis makes: a quarter, and no fewer than 25, of the NUMBER of `make full`."""
    return number if _asked_for_long else max(25, number // 4)


def every(number: int, values: Iterable[Any]) -> list[Any]:
    """Return parameters of which each NUMBERth is in the default, the first among them; the others are long."""
    return [
        each if index % number == 0 else pytest.param(each, marks=pytest.mark.long) for index, each in enumerate(values)
    ]


def diagonals(step: int, rows: Iterable[A], columns: Sequence[B]) -> list[tuple[A, B]]:
    """Return pairs of a product in which every row and every column comes: a STEPth of all of them."""
    return [
        (row, column)
        for index, row in enumerate(rows)
        for place, column in enumerate(columns)
        if (index + place) % step == 0
    ]
