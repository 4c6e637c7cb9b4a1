"""What tuning found, and the JSON document of it."""

from __future__ import annotations

from typing import NamedTuple

from trainlaunch.inside.tune.search import chosen, medians
from trainlaunch.inside.tune.task import Setting
from trainlaunch.measure.tune.limit import Limit
from trainlaunch.measure.tune.trial import Trial, TunedLoader

DRIFT = 0.1  # between the first setting's first timing and its last: the machine did something else meanwhile


class Tuned(NamedTuple):
    """All that was timed on `target`, in order, and what follows from it.

    `best` is the setting to take. `confirmed` is its timing in a fresh process with the plan's threads and `was` that
    of the setting as it is; None where there was no time for it. `takes_it`: the script used the planned number of
    workers by itself there. `unfinished` says what ended the search early.
    """

    job: str
    target: str
    ranks: int
    loader: TunedLoader
    trials: tuple[Trial, ...]
    best: Setting
    limit: Limit
    confirmed: Trial | None
    was: Trial | None
    takes_it: bool | None
    unfinished: str = ""

    @property
    def as_it_is(self) -> Setting:
        """The script's own setting, which is timed first."""
        return self.trials[0].setting

    @property
    def rates(self) -> dict[Setting, float]:
        """Batches per second of each setting under one loop, or in processes of their own; medians."""
        return medians([each.timed for each in self.trials])

    def middle(self, setting: Setting) -> Trial:
        """Return the middle one of a setting's timings, by rate."""
        own = sorted((each for each in self.trials if each.setting == setting), key=lambda each: each.rate)
        return own[len(own) // 2]

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
        "chosen": _setting_document(tuned.best),
        "gain": tuned.gain,
        "drift": tuned.drift,
        "limit": {"what": tuned.limit.what, "why": tuned.limit.why},
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
