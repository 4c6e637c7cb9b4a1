"""The script's options that take a planned value, and the command line that passes it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from trainlaunch.init.facts import OPTION, Loader, Option, ScriptFacts

_BY_NAME = {
    "num_workers": r"(?:(?:data_?)?loaders?_|data_|train_)?(?:num_|n_|nb_)?(?:data_?(?:loader)?_)?workers|nworkers|j",
    "batch_size": r"(?:per_device_)?(?:train_)?batch_?size|bs|b",
    "prefetch_factor": r"(?:data_?loader_)?prefetch(?:_factor)?",
}


def token_options(facts: ScriptFacts, *, workers_certain: bool) -> dict[str, list[Option]]:
    """Return the options that take each token, by token.

    The batch size is that of the loader whose values the tokens have; it needs a default, which the job file then
    states. `workers_certain`: no plan gives 0 workers, so that a prefetch factor can't be refused by torch.
    """
    chosen = {
        "num_workers": _of_loaders(facts, "num_workers", facts.loaders),
        "batch_size": [each for each in _of_loaders(facts, "batch_size", _leading(facts)) if _whole(each.default)],
    }
    if workers_certain and any(takes_auto(each) for each in facts.loaders):
        prefetch = _of_loaders(facts, "prefetch_factor", _leading(facts))
        chosen["prefetch_factor"] = [each for each in prefetch if _whole(each.default)]
    return {token: options for token, options in chosen.items() if options}


def takes_auto(loader: Loader) -> bool:
    """Whether a loader's workers come from the plan."""
    return loader.settings["num_workers"].kind in {OPTION, "auto"}


def _leading(facts: ScriptFacts) -> tuple[Loader, ...]:
    """Return the first loader that takes auto workers, else the first: the tokens have its values."""
    return tuple(sorted(facts.loaders, key=lambda each: not takes_auto(each))[:1])


def _of_loaders(facts: ScriptFacts, setting: str, loaders: Iterable[Loader]) -> list[Option]:
    """Return the options that loaders take a setting from, or without loaders those whose name says it."""
    used = [each.settings[setting].option for each in loaders if setting in each.settings]
    if not facts.loaders:
        used = [each for each in facts.options if re.fullmatch(_BY_NAME[setting], each.dest.lower())]
    flagged = [each for each in used if each is not None and each.flag and not each.changed]
    return list(dict.fromkeys(flagged))


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def arguments(tokens: dict[str, list[Option]]) -> list[str]:
    """Return the elements of argv that pass the tokens."""
    argv: list[str] = []
    for token, options in tokens.items():
        for option in options:
            argv += [f"{option.flag}={{{token}}}"] if option.joined else [option.flag, f"{{{token}}}"]
    return argv
