"""What tuning found, as text of at most 80 columns and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trainlaunch.inside.tune.task import Setting, chosen, medians
from trainlaunch.measure.tune.limit import LIMITS, Limit, percent
from trainlaunch.measure.tune.trial import Trial, TunedLoader
from trainlaunch.units import counted, human_size

AGREES = 0.25  # between a setting's rate under the script's loop and in a fresh run, of which nothing is said
DRIFT = 0.1  # between the first setting's first timing and its last: the machine did something else meanwhile


class Tuned(NamedTuple):
    """All that was timed on `target`, in order, and what follows from it.

    `best` is the setting to take. `confirmed` is its timing in a fresh process with its threads and `was` that of
    the setting as it is; None where there was no time for it. `takes_it`: the script used the planned number of workers
    by itself there. `planned_threads` are those of the plan beside its workers, None without any. `unfinished` says
    what ended the search early.
    """

    job: str
    target: str
    ranks: int
    loader: TunedLoader
    trials: tuple[Trial, ...]
    best: Setting
    limit: Limit | None
    confirmed: Trial | None
    was: Trial | None
    takes_it: bool | None
    planned_threads: int | None = None
    unfinished: str = ""

    @property
    def as_it_is(self) -> Setting:
        """The script's own setting, which is timed first."""
        return self.trials[0].setting

    @property
    def rates(self) -> dict[Setting, float]:
        """Batches per second of each setting under one loop, or in processes of their own; medians."""
        return medians([each.timed for each in self.trials])

    @property
    def compared(self) -> bool:
        """Whether two settings at least gave batches; one alone is the fastest of nothing."""
        return sum(rate > 0 for rate in self.rates.values()) > 1

    @property
    def own_threads(self) -> int | None:
        """The threads that the job file must set to have the best setting; None where it has them anyhow."""
        planned = self.as_it_is.threads if self.planned_threads is None else self.planned_threads
        return None if self.best.threads == planned else self.best.threads

    @property
    def gain_of_threads(self) -> float | None:
        """The rate of the script's own setting with the best one's threads beside that as it is; None if not timed."""
        alone, was = self.as_it_is._replace(threads=self.best.threads), self.rates[self.as_it_is]
        changed = self.best.threads != self.as_it_is.threads and self.best.num_workers != self.as_it_is.num_workers
        return self.rates.get(alone, 0.0) / was if changed and was and self.rates.get(alone) else None

    @property
    def gain(self) -> float | None:
        """The rate of the best setting beside that as it is; None where one of them has none."""
        fresh = self.confirmed is not None and self.was is not None
        best = self.confirmed.rate if fresh and self.confirmed else self.rates[self.best]
        was = self.was.rate if fresh and self.was else self.rates[self.as_it_is]
        return best / was if best and was else None

    @property
    def drift(self) -> float | None:
        """The first setting's last rate beside its first; None where it was timed once."""
        own = [each.rate for each in self.trials if each.setting == self.as_it_is and each.rate]
        return own[-1] / own[0] if len(own) > 1 else None

    @property
    def drifted(self) -> bool:
        """Whether the machine did so much else that close settings can't be told apart."""
        return self.drift is not None and abs(self.drift - 1) > DRIFT


def middle(trials: Sequence[Trial], setting: Setting) -> Trial | None:
    """Return the middle one of a setting's timings, by rate; None where it has none."""
    own = sorted((each for each in trials if each.setting == setting), key=lambda each: each.rate)
    return own[len(own) // 2] if own else None


def best_of(trials: tuple[Trial, ...]) -> Setting:
    """Return the setting to take."""
    return chosen([each.timed for each in trials]).setting


def tuned_document(tuned: Tuned) -> dict[str, object]:
    """Return what `tune -o json` says; rates are batches per second of one rank, sizes bytes."""
    loader = tuned.loader
    return {
        "job": tuned.job,
        "target": tuned.target,
        "loader": {
            "at": loader.at,
            "class": loader.kind,
            "batch_size": loader.batch_size,
            "changes_in_place": loader.changes_in_place,
            "reason": loader.reason or None,
            "optimizer_stepped": loader.stepped,
        },
        "cpus": loader.cpus,
        "ranks": tuned.ranks,
        "as_it_is": _setting_document(tuned.as_it_is),
        "chosen": _setting_document(tuned.best) if tuned.compared else None,
        "gain": tuned.gain if tuned.compared else None,
        "gain_of_threads_alone": tuned.gain_of_threads,
        "drift": tuned.drift,
        "limit": tuned.limit and tuned.limit._asdict(),
        "confirmed": tuned.confirmed and _trial_document(tuned.confirmed),
        "confirmed_as_it_is": tuned.was and _trial_document(tuned.was),
        "script_takes_num_workers": tuned.takes_it,
        "unfinished": tuned.unfinished or None,
        "timings": [_trial_document(each) for each in tuned.trials],
    }


def _setting_document(setting: Setting) -> dict[str, object]:
    return dict(setting._asdict())


def _trial_document(trial: Trial) -> dict[str, object]:
    values = trial._asdict()
    return {**_setting_document(values.pop("setting")), **values, "error": trial.error or None}


HEAD = "workers prefetch threads pin batches/s samples/s  wait  CPUs   /dev/shm    GPU"
WIDTH = 80


def trial_line(trial: Trial, loader: TunedLoader, ranks: int = 1) -> str:
    """Return one timing as a row below HEAD; samples are those of all ranks."""
    setting = trial.setting
    prefetch = str(setting.prefetch_factor) if setting.num_workers else "-"
    pinned = {None: "-", True: "yes", False: "no"}[setting.pin_memory]
    threads = "-" if setting.threads is None else str(setting.threads)
    start = f"{setting.num_workers:>7} {prefetch:>8} {threads:>7} {pinned:>3}"
    if trial.error or not trial.rate:
        return f"{start}  {_problem(trial.error)}"[: WIDTH - 1]
    samples = "-" if loader.batch_size is None else _fitting(trial.rate * loader.batch_size * ranks, 1)
    used = "-" if trial.cpus_used is None else f"{trial.cpus_used:.2f}"
    busy = "-" if trial.gpu_busy is None else f"{trial.gpu_busy:.0f} %"
    return (
        f"{start} {_fitting(trial.rate, 2):>9} {samples:>9} {percent(trial.wait_share):>5}"
        f" {used:>5} {human_size(trial.shm_peak):>10} {busy:>6}"
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
        tuned.rates, key=lambda each: (each.num_workers, each.prefetch_factor, each.threads or 0, bool(each.pin_memory))
    ):
        mark = "*" if tuned.compared and setting == tuned.best else ""
        timing = middle(tuned.trials, setting)
        if timing is not None:
            yield f"{mark:<1}{trial_line(timing, tuned.loader, tuned.ranks)[1:]}"


def summary(tuned: Tuned) -> Iterator[str]:
    """Yield the lines below the table: what to take, what it brings, what limits it, how sure that is."""
    best, was = words(tuned.best), words(tuned.as_it_is)
    if not tuned.compared:
        yield f"nothing was compared: {best} is the only setting that was timed"
    elif tuned.best == tuned.as_it_is:
        yield f"fastest: {best}, as it is"
    else:
        gain = tuned.gain
        times = f", {gain:.2f} × as it is ({was})" if gain is not None else f"; as it is: {was}"
        yield f"fastest: {best}{times}"
        if tuned.gain_of_threads is not None:
            threads = counted(tuned.best.threads or 0, "thread")
            own = f"num_workers {tuned.as_it_is.num_workers}"
            yield f"{threads} beside {own} alone: {tuned.gain_of_threads:.2f} × as it is; the rest is the workers'"
    if not tuned.loader.stepped:
        yield "no optimizer of torch stepped, so the loop that went on longest was timed"
    if tuned.limit is not None:
        yield f"limited by {LIMITS[tuned.limit.what]}: {tuned.limit.why}"
    if tuned.confirmed is not None:
        beside = "" if tuned.was is None else f", as it is {tuned.was.rate:.2f}"
        share = tuned.confirmed.rate / (tuned.rates[tuned.best] or tuned.confirmed.rate or 1.0)
        beside += f", {share:.2f} × its rate above" if abs(share - 1) > AGREES else ""
        yield f"in a fresh run: {tuned.confirmed.rate:.2f} batches/s{beside}"
    elif tuned.compared:
        yield "not confirmed in a fresh run: there was no time left; a larger --budget has it"
    if tuned.drifted and tuned.drift is not None:
        yield (
            f"the first setting's last timing was {tuned.drift:.2f} × its first: this host does other work, and "
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
    text += "" if setting.threads is None else f", {counted(setting.threads, 'thread')}"
    return text + {None: "", True: ", pin_memory on", False: ", pin_memory off"}[setting.pin_memory]
