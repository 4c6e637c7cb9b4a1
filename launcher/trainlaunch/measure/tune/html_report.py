"""What tuning found as one HTML file that needs nothing beside itself: for a phone, in the dark and in print.

Its plots over the number of workers are SVG: lines with points, axes with round numbers, one text for each point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from trainlaunch.inside.tune.task import Setting
from trainlaunch.measure.tune.limit import cpus_text, percent
from trainlaunch.measure.tune.result import Tuned, middle, summary, words
from trainlaunch.measure.tune.trial import Trial
from trainlaunch.units import GIB, MIB, counted, human_size

STYLES = 4
_STYLE = """\
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --grid: #d5d9de; --soft: #57606a;
  --c0: #0b62c4; --c1: #b35900; --c2: #1a7f37; --c3: #8250df; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --grid: #30363d; --soft: #9198a1;
  --c0: #58a6ff; --c1: #f0883e; --c2: #3fb950; --c3: #bc8cff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 74rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.3rem; line-height: 1.25; } h2 { font-size: 1rem; margin: 0 0 .25rem; }
.plots { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); }
figure { margin: 0; min-width: 0; } svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
.grid { stroke: var(--grid); } polyline { fill: none; stroke-width: 2; }
polyline.s0 { stroke: var(--c0); } polyline.s1 { stroke: var(--c1); stroke-dasharray: 6 3; }
polyline.s2 { stroke: var(--c2); stroke-dasharray: 2 3; } polyline.s3 { stroke: var(--c3); stroke-dasharray: 9 3 2 3; }
circle.s0 { fill: var(--c0); } circle.s1 { fill: var(--c1); } circle.s2 { fill: var(--c2); }
circle.s3 { fill: var(--c3); }
circle.chosen { fill: none; stroke: var(--ink); stroke-width: 1.5; }
.key { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1rem; padding: 0; }
.key span { display: inline-block; width: .8em; height: .8em; border-radius: 50%; margin-right: .4em; }
.key .s0 { background: var(--c0); } .key .s1 { background: var(--c1); } .key .s2 { background: var(--c2); }
.key .s3 { background: var(--c3); } .key .chosen { border: 2px solid var(--ink); }
.table { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .2rem .5rem; text-align: right; border-bottom: 1px solid var(--grid); white-space: nowrap; }
td.error { text-align: left; white-space: normal; } tr.best { font-weight: 700; }
@media print { :root { --ink: #000; --paper: #fff; --grid: #bbb; --soft: #333; --c0: #0b62c4; --c1: #b35900;
  --c2: #1a7f37; --c3: #8250df; } body { padding: 0; max-width: none; font-size: 11pt; }
  .plots { grid-template-columns: 1fr 1fr; } figure, tr { break-inside: avoid; } .table { overflow: visible; }
  circle, polyline, .key span { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""
_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
{body}
</body>
</html>
"""
WIDTH, HEIGHT = 340, 210
LEFT, RIGHT, TOP, BOTTOM = 58, 16, 14, 34
TICKS = 4
MIN_STEP = 1e-9  # step of an axis: what is below it is drawn as nothing


class _Measure(NamedTuple):
    """One plot: how a trial's value is read (None: not measured) and shown."""

    title: str
    unit: str
    value: Callable[[Trial], float | None]
    most: float | None = None


def report(tuned: Tuned) -> str:
    """Return the page; whatever the script reported is escaped."""
    title = f"trainlaunch tune: {tuned.job} on {tuned.target}"
    loader = tuned.loader
    batch = "its dataset yields batches" if loader.batch_size is None else f"batch_size {loader.batch_size}"
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(loader.kind)} of the loop at {escape(loader.at)}, {batch}, {counted(tuned.ranks, 'rank')}, "
        f"{counted(cpus_text(loader.cpus), 'CPU')}</p>",
        *(f"<p>{escape(line[0].upper() + line[1:])}.</p>" for line in summary(tuned)),
        *_key(tuned),
        '<div class="plots">',
        *_figures(tuned),
        "</div>",
        *_table(tuned),
    ]
    return _PAGE.format(title=escape(title), style=_STYLE, body="\n".join(body))


def is_report(text: str) -> bool:
    """Return whether a file that begins with `text` is such a page."""
    return "<title>trainlaunch tune: " in text


def _measures(tuned: Tuned) -> Iterator[_Measure]:
    peak = max(each.shm_peak for each in tuned.trials)
    unit, size = ("GiB", GIB) if peak >= 4 * GIB else ("MiB", MIB)
    yield _Measure("Throughput", "batches/s of one rank", lambda each: each.rate)
    yield _Measure("Waiting for batches", "% of the time", lambda each: 100 * each.wait_share, 100)
    yield _Measure("/dev/shm, peak", unit, lambda each: each.shm_peak / size)
    yield _Measure("CPUs busy", f"CPUs of {cpus_text(tuned.loader.cpus)}", lambda each: each.cpus_used)
    yield _Measure("GPU busy", "% of the time", lambda each: each.gpu_busy, 100)


def _figures(tuned: Tuned) -> Iterator[str]:
    lines = _lines(tuned)
    for measure in _measures(tuned):
        series = tuple(
            Series(name, style, tuple(_points(measure, trials, tuned.best)))
            for style, (name, trials) in enumerate(lines.items())
        )
        series = tuple(each for each in series if each.points)
        if sum(len(each.points) for each in series) > 1:
            plot = Plot(measure.title, measure.unit, series, measure.most)
            yield f"<figure><h2>{escape(measure.title)}, {escape(measure.unit)}</h2>\n{svg(plot)}\n</figure>"


def _points(measure: _Measure, trials: list[Trial], best: Setting) -> Iterator[Point]:
    for trial in trials:
        value = measure.value(trial)
        if value is not None and trial.rate:
            yield Point(
                trial.setting.num_workers,
                value,
                f"{words(trial.setting)}: {value:.4g} {measure.unit}",
                chosen=trial.setting == best,
            )


def _lines(tuned: Tuned) -> dict[str, list[Trial]]:
    """Return the settings' timings in lines of one prefetch factor and pinning; of several timings the middle one."""
    lines: dict[str, list[Trial]] = {}
    first = tuned.as_it_is
    for setting in tuned.rates:
        factor = setting.prefetch_factor if setting.num_workers else first.prefetch_factor
        pinned = {None: "", True: ", pin_memory on", False: ", pin_memory off"}[setting.pin_memory]
        name, timing = f"prefetch_factor {factor}{pinned}", middle(tuned.trials, setting)
        if any(each.setting.num_workers == setting.num_workers for each in lines.get(name, ())):
            name += ", other threads"
        lines.setdefault(name, []).extend([timing] if timing else [])
    kept = dict(list(lines.items())[:STYLES])
    for trials in list(lines.values())[STYLES:]:  # no colour is left: with the last ones
        kept[list(kept)[-1]] += trials
    return kept


def _key(tuned: Tuned) -> Iterator[str]:
    yield '<ul class="key">'
    for style, name in enumerate(_lines(tuned)):
        yield f'<li><span class="s{style}"></span>{escape(name)}</li>'
    yield f'<li><span class="chosen"></span>chosen: {escape(words(tuned.best))}</li>'
    yield "</ul>"


def _table(tuned: Tuned) -> Iterator[str]:
    heads = ("workers", "prefetch", "threads", "pin", "batches/s", "wait", "CPUs", "throttled", "/dev/shm", "GPU")
    yield (
        '<div class="table"><table><thead><tr>' + "".join(f"<th>{each}</th>" for each in heads) + "</tr></thead><tbody>"
    )
    for trial in (*tuned.trials, *((tuned.confirmed,) if tuned.confirmed and tuned.loader.changes_in_place else ())):
        mark = ' class="best"' if trial.setting == tuned.best else ""
        cells = "".join(f"<td>{escape(each)}</td>" for each in _start(trial))
        if trial.error:
            yield f'<tr{mark}>{cells}<td class="error" colspan="6">{escape(trial.error)}</td></tr>'
        else:
            yield f"<tr{mark}>{cells}" + "".join(f"<td>{escape(each)}</td>" for each in _cells(trial)) + "</tr>"
    yield "</tbody></table></div>"


def _start(trial: Trial) -> Iterator[str]:
    setting = trial.setting
    yield f"{setting.num_workers}{' (fresh run)' if trial.fresh else ''}"
    yield str(setting.prefetch_factor) if setting.num_workers else "–"
    yield "–" if setting.threads is None else str(setting.threads)
    yield {None: "–", True: "on", False: "off"}[setting.pin_memory]


def _cells(trial: Trial) -> Iterator[str]:
    yield f"{trial.rate:.2f}"
    yield percent(trial.wait_share)
    yield "–" if trial.cpus_used is None else f"{trial.cpus_used:.2f}"
    yield "–" if trial.throttled_share is None else percent(trial.throttled_share)
    yield human_size(trial.shm_peak)
    yield "–" if trial.gpu_busy is None else f"{trial.gpu_busy:.0f} %"


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
    if rough < MIN_STEP:
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
