"""The page that `tune --html` writes, as Chromium shows it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.measure.tune.html_report import is_report, report

from tests.measure.tune.browser import chromium, colours_drawn, looked_at, printed
from tests.measure.tune.made import LOADER, trial, tuned

TITLES = ["Throughput", "Waiting for batches", "/dev/shm, peak", "CPUs busy", "GPU busy"]
HOSTILE = "<script>document.title = 'theirs'</script><img src=http://example.com/x>\" onload=\"x"


@pytest.fixture(autouse=True)
def browser() -> None:
    """Skip without Chromium, but in CI."""
    if chromium() is None:
        assert os.environ.get("CI") != "true", "Chromium is not installed"
        pytest.skip("Chromium is not installed (Debian's package chromium)")


def inside(box: list[float], outer: list[float]) -> bool:
    """Whether a box lies in another one, but for the rounding of a pixel."""
    left, top, right, bottom = box
    return left >= outer[0] - 1 and top >= outer[1] - 1 and right <= outer[2] + 1 and bottom <= outer[3] + 1


def apart(texts: list[list[Any]]) -> bool:
    """Whether no two texts overlap."""
    boxes = [each[1:] for each in texts]
    pairs = ((one, two) for index, one in enumerate(boxes) for two in boxes[:index])
    return all(
        one[2] <= two[0] + 1 or two[2] <= one[0] + 1 or one[3] <= two[1] + 3 or two[3] <= one[1] + 3
        for one, two in pairs
    )


@pytest.mark.parametrize("width", [360, pytest.param(1100, marks=pytest.mark.long)])
def test_all_plots_show_all_series_and_nothing_overflows(tmp_path: Path, width: int) -> None:
    """On a phone and on a desk: each line and point inside its plot, no text over another, no scrolling sideways."""
    seen = looked_at(report(tuned()), tmp_path, width=width)
    assert seen["width"] == width
    assert seen["table"][2] <= width
    assert [next(each for each in TITLES if figure["title"].startswith(each)) for figure in seen["figures"]] == TITLES
    for figure in seen["figures"]:
        assert figure["svg"][2] <= width
        assert figure["svg"][3] - figure["svg"][1] > 150
        assert [each[0] for each in figure["lines"]] == ["s0"]  # the others have one point each
        assert {each[0] for each in figure["points"]} == {"s0", "s1", "s2", "s3", "chosen"}
        assert len([each for each in figure["points"] if each[0] == "s0"]) == 8
        for kind in ("lines", "points", "texts"):
            assert all(inside(each[1:], figure["svg"]) for each in figure[kind]), (figure["title"], kind)
        assert apart(figure["texts"])
        assert [each[0] for each in figure["texts"]][-1] == "workers"
    assert "Fastest: num_workers 14, prefetch_factor 4, pin_memory on, 10.27 × as it is" in seen["text"]
    assert "killed by signal: Bus error" in seen["text"]


@pytest.mark.parametrize("dark", [pytest.param(False, marks=pytest.mark.long), True], ids=["light", "dark"])
def test_every_colour_is_drawn(tmp_path: Path, dark: bool) -> None:
    """Of four lines and of the text, on paper that the text is read on."""
    page = report(tuned())
    seen = looked_at(page, tmp_path, width=900, dark=dark)
    assert seen["dark"] is dark
    wanted = {name: tuple(map(int, re.findall(r"\d+", value)[:3])) for name, value in seen["colours"].items()}
    drawn = colours_drawn(page, tmp_path, dark=dark)
    assert {*wanted} == {"s0", "s1", "s2", "s3", "chosen"}
    for name in ("s0", "s1", "s2", "s3"):
        assert drawn.get(wanted[name], 0) > 5 * 20, name  # a point in each of five plots
    paper, ink = (tuple(map(int, re.findall(r"\d+", seen[each])[:3])) for each in ("paper", "ink"))
    assert max(drawn, key=lambda each: drawn[each]) == paper
    assert drawn[ink] > 500
    assert (sum(paper) < sum(ink)) is dark


@pytest.mark.long
def test_it_prints(tmp_path: Path) -> None:
    """As PDF."""
    paper = printed(report(tuned()), tmp_path)
    assert paper.startswith(b"%PDF-")
    assert len(paper) > 10_000


def test_what_the_script_reported_is_text(tmp_path: Path) -> None:
    """No element of theirs, and nothing that asks the network."""
    page = report(
        tuned(LOADER._replace(at=HOSTILE, kind=HOSTILE), trials=(*tuned().trials, trial(3, 0.0, error=HOSTILE)))
    )
    seen = looked_at(page, tmp_path, width=360)
    assert (seen["scripts"], "@import" in page) == (0, False)
    assert seen["text"].count("<script>") == 3
    assert seen["width"] == 360
    assert seen["asking"] == 0
    assert "url(" not in page
    assert "default-src 'none'" in page


def test_what_was_not_measured_has_no_plot_and_one_dot_is_none(tmp_path: Path) -> None:
    """No GPU, no counter of CPUs; and of one setting alone there is a table."""
    two = [trial(each, 3.0, pinned=None, gpu_busy=None, cpus_used=None, shm_peak=0) for each in (0, 1)]
    shown = tuned(trials=tuple(two), best=two[0].setting, confirmed=None, was=None)
    seen = looked_at(report(shown), tmp_path, width=360)
    assert [figure["title"].split(",")[0] for figure in seen["figures"]] == [
        "Throughput",
        "Waiting for batches",
        "/dev/shm",
    ]
    assert all(len(figure["points"]) == 3 for figure in seen["figures"])
    alone = report(shown._replace(trials=(two[0],)))
    assert looked_at(alone, tmp_path, width=360)["figures"] == []


@pytest.mark.parametrize(
    ("rate", "peak"),
    [(float(1 << 53), 1 << 53), *(pytest.param(*each, marks=pytest.mark.long) for each in ((5e-324, 0), (0.0001, 1)))],
)
def test_numbers_that_nobody_expects_are_drawn_within_a_phone(tmp_path: Path, rate: float, peak: int) -> None:
    """What a script reports may be anything."""
    trials = tuple(trial(each, rate, shm_peak=peak, cpus_used=rate) for each in (0, 9999))
    seen = looked_at(report(tuned(trials=trials, best=trials[0].setting)), tmp_path, width=360)
    assert seen["width"] == 360
    for figure in seen["figures"]:
        assert all(inside(each[1:], figure["svg"]) for each in figure["points"] + figure["texts"])
        assert apart(figure["texts"])


def test_a_page_of_ours_is_known_again() -> None:
    """So that --html replaces it, and nothing else."""
    assert is_report(report(tuned())[:4096])
    assert not is_report("<!doctype html><title>a page</title>")
