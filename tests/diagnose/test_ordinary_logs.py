"""Megabytes of what programs print while all is well name nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest
from trainlaunch.diagnose import all_causes, new_scanner
from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.diagnose.base.log_facts import LogFacts

from tests.diagnose.corpus import DRESSES

FORMS = [
    line.replace("\\r", "\r").replace("\\x1b", "\x1b")
    for line in (Path(__file__).parent / "ordinary.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("# ")
]
MEGABYTES = [1, pytest.param(5, marks=pytest.mark.long)]
CAUSE = "RuntimeError: received 0 items of ancdata\n"


def filled(form: str, number: int) -> str:
    """Return a line with its numbers, always the same for one number."""
    mixed = (number + 1) * 2_654_435_761 % 2**32
    values = {"{n}": str(number % 10), "{f}": f"0.{mixed % 9973:04d}", "{p}": str(1024 + mixed % 60000)}
    for name, value in {**values, "{h}": f"{mixed:08x}{mixed * 40_503 % 2**32:08x}"}.items():
        form = form.replace(name, value)
    return form


def lines(dress: str) -> Iterator[bytes]:
    """Yield lines without end, each program's together, as an engine or a launcher shows them."""
    shown = DRESSES[dress]
    for number, form in enumerate(cycle(FORMS)):
        yield f"{shown(filled(form, number))}\n".encode()


def scanned(dress: str, least: int, cause: str = "") -> LogFacts:
    """Return the facts of so many bytes of ordinary lines, a cause in their middle."""
    scanner, size, told = new_scanner(), 0, not cause
    for line in lines(dress):
        if not told and size >= least // 2:
            scanner.feed(cause.encode())
            told = True
        scanner.feed(line)
        size += len(line)
        if size >= least:
            return scanner.facts()
    raise AssertionError("it has no end")


def test_no_ordinary_line_alone_names_anything() -> None:
    """In a run that goes on, and in one that ended with 0: a false alarm is told with its line."""
    named = []
    for form in FORMS:
        text = "".join(filled(form, number) + "\n" for number in range(3))
        named += [(form, code, found) for code in (None, 0) if (found := all_causes(Evidence(code, text)))]
    assert named == []


@pytest.mark.parametrize("megabytes", MEGABYTES)
def test_megabytes_of_ordinary_lines_name_nothing(megabytes: int) -> None:
    """As programs print them."""
    facts = scanned("plain", megabytes << 20)
    for code in (None, 0):
        assert all_causes(Evidence(code, scanned=facts)) == ()


@pytest.mark.parametrize("dress", [each for each in DRESSES if each != "plain"])
def test_ordinary_lines_name_nothing_through_what_others_put_around_them(dress: str) -> None:
    """Engines, clusters, launchers and terminals."""
    facts = scanned(dress, 5 << 16)
    for code in (None, 0):
        assert all_causes(Evidence(code, scanned=facts)) == ()


@pytest.mark.parametrize("megabytes", MEGABYTES)
def test_a_cause_among_megabytes_of_ordinary_lines_is_named(megabytes: int) -> None:
    """So that silence above means something."""
    facts = scanned("plain", megabytes << 20, CAUSE)
    assert [each.symptom for each in all_causes(Evidence(1, scanned=facts))][:1] == ["fd-limit"]
