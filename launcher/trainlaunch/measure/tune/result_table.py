"""What tuning found as text of at most 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from trainlaunch.inside.tune.task import Setting
from trainlaunch.measure.tune.result import LIMITS, Tuned, percent
from trainlaunch.measure.tune.trial import Trial, TunedLoader
from trainlaunch.units import human_size

HEAD = "workers  prefetch  pin  batches/s   samples/s   wait   CPUs    /dev/shm    GPU"
WIDTH = 80


def trial_line(trial: Trial, loader: TunedLoader, ranks: int = 1) -> str:
    """Return one timing as a row below HEAD; samples are those of all ranks."""
    setting = trial.setting
    prefetch = str(setting.prefetch_factor) if setting.num_workers else "-"
    pinned = {None: "-", True: "yes", False: "no"}[setting.pin_memory]
    start = f"{setting.num_workers:>7}  {prefetch:>8}  {pinned:>3}"
    if trial.error or not trial.rate:
        return f"{start}  {_problem(trial.error)}"[: WIDTH - 1]
    samples = "-" if loader.batch_size is None else _fitting(trial.rate * loader.batch_size * ranks, 1)
    used = "-" if trial.cpus_used is None else f"{trial.cpus_used:.2f}"
    busy = "-" if trial.gpu_busy is None else f"{trial.gpu_busy:.0f} %"
    return (
        f"{start}  {_fitting(trial.rate, 2):>9}  {samples:>10}  {percent(trial.wait_share):>5}"
        f"  {used:>5}  {human_size(trial.shm_peak):>10}  {busy:>5}"
    )


def _problem(error: str) -> str:
    """Return the line of an error that tells most: a worker's own is the last one of its traceback."""
    lines = error.strip().splitlines() or ["no batch was timed"]
    return lines[-1].strip() if any("Traceback (most recent call last)" in each for each in lines) else lines[0]


def _fitting(rate: float, decimals: int) -> str:
    """Return a rate in nine characters at most."""
    return next(text for text in (f"{rate:.{decimals}f}", f"{rate:.0f}", f"{rate:.3g}") if len(text) <= 9)


def table(tuned: Tuned) -> Iterator[str]:
    """Yield HEAD and a row for each setting, its middle timing, by workers; a star marks the one to take."""
    yield HEAD
    for setting in sorted(
        tuned.rates, key=lambda each: (each.num_workers, each.prefetch_factor, bool(each.pin_memory))
    ):
        middle = tuned.middle(setting)
        mark = "*" if setting == tuned.best else ""
        yield f"{mark:<1}{trial_line(middle, tuned.loader, tuned.ranks)[1:]}"


def summary(tuned: Tuned) -> Iterator[str]:
    """Yield the lines below the table: what to take, what it brings, what limits it, how sure that is."""
    best, was = words(tuned.best), words(tuned.as_it_is)
    if tuned.best == tuned.as_it_is:
        yield f"fastest: {best}, as it is"
    else:
        gain = tuned.gain
        times = f", {gain:.2f} × as it is ({was})" if gain is not None else f"; as it is: {was}"
        yield f"fastest: {best}{times}"
    if not tuned.loader.stepped:
        yield "no optimizer of torch stepped, so the loop that went on longest was timed"
    yield f"limited by {LIMITS[tuned.limit.what]}: {tuned.limit.why}"
    if tuned.confirmed is not None:
        beside = "" if tuned.was is None else f", as it is {tuned.was.rate:.2f}"
        yield f"confirmed in a fresh run: {tuned.confirmed.rate:.2f} batches/s{beside}"
    else:
        yield "not confirmed in a fresh run: there was no time left; a larger --budget has it"
    if tuned.drifted and tuned.drift is not None:
        yield (
            f"the first setting's last timing was {tuned.drift:.2f} × its first: this machine does other work, and "
            "settings that differ by less can't be told apart"
        )
    if tuned.unfinished:
        yield f"not all was timed: {tuned.unfinished}"


def words(setting: Setting) -> str:
    """Return a setting as the arguments that people know."""
    if not setting.num_workers:
        text = "num_workers 0"
    else:
        text = f"num_workers {setting.num_workers}, prefetch_factor {setting.prefetch_factor}"
    return text + {None: "", True: ", pin_memory on", False: ", pin_memory off"}[setting.pin_memory]
