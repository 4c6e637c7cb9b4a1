"""Plots over the number of workers as SVG: lines with points, axes with round numbers, one text for each point."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 340, 210
LEFT, RIGHT, TOP, BOTTOM = 58, 16, 14, 34
TICKS = 4
SMALLEST = 1e-9  # step of an axis: what is below it is drawn as nothing


class Point(NamedTuple):
    """One measured value; `told` is what a pointer over it shows. `chosen`: it is the setting to take."""

    workers: int
    value: float
    told: str
    chosen: bool = False


class Series(NamedTuple):
    """Points of one line; `style` is its number among the page's colours."""

    name: str
    style: int
    points: tuple[Point, ...]


class Plot(NamedTuple):
    """One figure; `unit` stands at its axis, `most` is the top of an axis with a natural end."""

    title: str
    unit: str
    series: tuple[Series, ...]
    most: float | None = None


def svg(plot: Plot) -> str:
    """Return the plot; text is escaped, and no element refers to anything outside."""
    points = [each for series in plot.series for each in series.points]
    last = max(each.workers for each in points)
    step, top = _axis(plot.most or max(each.value for each in points))
    scale = _Scale(last, top)
    label = f"{plot.title} over the number of workers, in {plot.unit}"
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">']
    parts += _grid(scale, step)
    parts += _workers_axis(scale, sorted({each.workers for each in points}))
    for series in plot.series:
        parts += _line(scale, series)
    return "\n".join([*parts, "</svg>"])


class _Scale(NamedTuple):
    last: int
    top: float

    def x(self, workers: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * workers / max(1, self.last)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(value, self.top) / self.top


def _axis(most: float) -> tuple[float, float]:
    """Return a round step and the top of an axis that holds `most`."""
    rough = most / TICKS
    if rough < SMALLEST:
        return 1.0, 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in (1, 2, 2.5, 5, 10) if each * power >= rough * 0.999)
    return step, step * math.ceil(most / step * 0.999)


def _grid(scale: _Scale, step: float) -> Iterator[str]:
    for index in range(round(scale.top / step) + 1):
        value = index * step
        y = scale.y(value)
        yield f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.6g}</text>'


def _workers_axis(scale: _Scale, workers: Sequence[int]) -> Iterator[str]:
    """Yield the numbers below the plot that have room, and what they count."""
    before = -math.inf
    for each in workers:
        x = scale.x(each)
        if x - before >= 18:
            before = x
            yield f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">{each}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text x="{middle:.0f}" y="{HEIGHT - 5}" text-anchor="middle">workers</text>'


def _line(scale: _Scale, series: Series) -> Iterator[str]:
    placed = [(scale.x(each.workers), scale.y(each.value), each) for each in sorted(series.points)]
    if len(placed) > 1:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in placed)
        yield f'<polyline class="s{series.style}" points="{path}"/>'
    for x, y, point in placed:
        if point.chosen:
            yield f'<circle class="chosen" cx="{x:.1f}" cy="{y:.1f}" r="7"/>'
        yield (
            f'<circle class="s{series.style}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{escape(point.told)}</title>'
            "</circle>"
        )
