"""What tuning found as one HTML file that needs nothing beside itself: for a phone, in the dark and in print."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from typing import NamedTuple

from trainlaunch.inside.tune.task import Setting
from trainlaunch.measure.tune.limit import cpus_text, percent
from trainlaunch.measure.tune.plots import Plot, Point, Series, svg
from trainlaunch.measure.tune.result import Tuned
from trainlaunch.measure.tune.result_table import summary, words
from trainlaunch.measure.tune.trial import Trial
from trainlaunch.units import GIB, MIB, human_size

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
        f"<p>{escape(loader.kind)} at {escape(loader.at)}, {batch}, {tuned.ranks} ranks, "
        f"{cpus_text(loader.cpus)} CPUs</p>",
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
        if series:
            plot = Plot(measure.title, measure.unit, series, measure.most)
            yield f"<figure><h2>{escape(measure.title)}, {escape(measure.unit)}</h2>\n{svg(plot)}\n</figure>"


def _points(measure: _Measure, trials: list[Trial], best: Setting) -> Iterator[Point]:
    for trial in trials:
        value = measure.value(trial)
        if value is not None and trial.rate:
            told = f"{words(trial.setting)}: {value:.4g} {measure.unit}"
            yield Point(trial.setting.num_workers, value, told, chosen=trial.setting == best)


def _lines(tuned: Tuned) -> dict[str, list[Trial]]:
    """Return the settings' timings in lines of one prefetch factor and pinning; of several timings the middle one."""
    lines: dict[str, list[Trial]] = {}
    first = tuned.as_it_is
    for setting in tuned.rates:
        factor = setting.prefetch_factor if setting.num_workers else first.prefetch_factor
        pinned = {None: "", True: ", pin_memory on", False: ", pin_memory off"}[setting.pin_memory]
        lines.setdefault(f"prefetch_factor {factor}{pinned}", []).append(tuned.middle(setting))
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
    heads = ("workers", "prefetch", "pin", "batches/s", "wait", "CPUs", "throttled", "/dev/shm", "GPU")
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
    yield {None: "–", True: "on", False: "off"}[setting.pin_memory]


def _cells(trial: Trial) -> Iterator[str]:
    yield f"{trial.rate:.2f}"
    yield percent(trial.wait_share)
    yield "–" if trial.cpus_used is None else f"{trial.cpus_used:.2f}"
    yield "–" if trial.throttled_share is None else percent(trial.throttled_share)
    yield human_size(trial.shm_peak)
    yield "–" if trial.gpu_busy is None else f"{trial.gpu_busy:.0f} %"
