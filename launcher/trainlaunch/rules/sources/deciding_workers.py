"""Who decides how many workers a job's script has: the one fact that every advice on their number reads.

It is found in the script's text where that lies in a folder of this host that the job mounts (nothing is run), else
in what `probe` recorded, else in the command alone. It only words advice: no number of a plan follows from it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from trainlaunch.job.command_script import command_script, job_commands, script_on_this_machine
from trainlaunch.job.spec import JobSpec
from trainlaunch.job.tokens import token_of
from trainlaunch.plan.instrumentation import INJECTED, OVERRIDING
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.lock_overrides import fresh_probe
from trainlaunch.repository.root import ITS_OWN
from trainlaunch.rules.sources.training_commands import (
    OPTION_OF_WORKERS,
    OVERRIDE_OF_WORKERS,
    VARIABLES_OF_WORKERS,
)
from trainlaunch.script.given_options import given_to, option_at
from trainlaunch.script.read_script import known_facts
from trainlaunch.script.script_facts import (
    AUTO,
    KNOWN,
    OPTION,
    OVERRIDE,
    UNSTATED,
    VARIABLE,
    Loader,
    Option,
    ScriptFacts,
    Value,
)

PLANNED = "{num_workers}"
INJECT = "data_loader.inject"


class WorkersDecision(NamedTuple):
    """Who decides num_workers of one loader.

    `kind` is `plan` (it takes what trainlaunch plans), `option`, `variable`, `override`, `constant`, `library` (the
    call leaves it to torch or a framework) or `unknown`. `name` is the option, variable or key, with its joining
    sign, or the keyword of a constant; `place` a line of the script; `number` what it is now, None where that is
    unknown. `passed`: the job sets it.
    """

    kind: str
    name: str = ""
    place: str = ""
    number: int | None = None
    passed: bool = False

    def to_have(self, number: int) -> str:
        """Return what to type so that the script has `number` workers."""
        field = f"set data_loader.num_workers to {number}"
        add = "write" if self.passed else "add"
        return {
            "plan": field,
            "option": f"{add} {self.name}{number} in command, and {field}",
            "override": f"{add} {self.name}{number} in command, and {field}",
            "variable": f'{add} {self.name}: "{number}" in env, and {field}',
            "constant": f"{field}, and write {self._assignment(number)} at {self.place} or data_loader.inject: force",
            "library": f"{field}, and write num_workers={number} at {self.place} or data_loader.inject: num_workers",
        }.get(self.kind, f"{field}, and let the script start {number} where it sets its DataLoader's num_workers")

    def lower(self, now: int | None = None) -> str:
        """Return how the script gets fewer workers than it has `now`, as the first half of an advice."""
        if self.kind in {"plan", "unknown"}:
            return "lower data_loader.num_workers" + (f" (now {now})" if now is not None else "")
        workers = "num_workers" if now is None else f"the {now} workers"
        return f"lower {workers} in the script and in data_loader.num_workers ({self.words})"

    def _assignment(self, number: int) -> str:
        """Return a number of workers as it stands in a script, or in another file whose key nobody need know."""
        return f"{self.name or 'num_workers'}={number}" if ".py:" in self.place else str(number)

    def take_planned(self) -> str:
        """Return what to type so that the script takes the planned number; empty where it does."""
        ways = {
            "option": f"write {self.name}{PLANNED} in command",
            "override": f"write {self.name}{PLANNED} in command",
            "variable": f'write {self.name}: "{PLANNED}" in env',
            "constant": f"{self.place} sets {self.number}: write data_loader.inject: force, or let that line read "
            "TRAINLAUNCH_NUM_WORKERS",
            "library": f"{self.place} sets none: write data_loader.inject: num_workers",
            "plan": "",
        }
        return ways.get(
            self.kind,
            f"pass {PLANNED} in command or env to what the script reads, or let it read TRAINLAUNCH_NUM_WORKERS",
        )

    @property
    def is_certain(self) -> bool:
        """Whether the script's line takes this very number, and no variable of an image can change it.

        An option of the command that no line of the script is known to take has no place.
        """
        known = self.kind in {"constant", "option", "override"} or (self.kind == "variable" and self.passed)
        return known and bool(self.place)

    @property
    def _words_of_plan(self) -> str:
        if self.name == INJECT:
            return f"{INJECT} sets it in the script"
        return f"the script takes it from {self.name}" if self.name else "the script takes it"

    @property
    def words(self) -> str:
        """Who decides, as a line of a plan says it."""
        number = "" if self.number is None else f" {self.number}"
        return {
            "plan": self._words_of_plan,
            "option": f"{self.name.rstrip('= ')}{number} of the command decides"
            if self.passed
            else f"the script's own {self.name.rstrip('= ')}{number} decides ({self.place})",
            "override": f"{self.name.rstrip('=')}{number} of the command decides"
            if self.passed
            else f"{self.place} sets{number} for {self.name.rstrip('=')}",
            "variable": f"{self.name}{number} decides ({self.place})" if self.place else f"{self.name}{number} decides",
            "constant": f"{self.place} sets{number}",
            "library": f"{self.place} sets none, and torch takes 0",
        }.get(self.kind, "what the script does with it is unknown")


UNKNOWN = WorkersDecision("unknown")


def deciding_workers(job: JobSpec) -> WorkersDecision:
    """Return who decides for the job: of several loaders, the first that doesn't take the planned number."""
    every = workers_decisions(job)
    return next((each for each in every if each.kind != "plan"), every[0] if every else UNKNOWN)


def runs_no_worker(plan: LaunchPlan) -> bool:
    """Whether the script takes the planned number of workers, and that is 0: no batch passes through /dev/shm."""
    return not plan.shm.most_workers and deciding_workers(plan.job).kind == "plan"


def workers_decisions(job: JobSpec, facts: ScriptFacts | None = None) -> tuple[WorkersDecision, ...]:
    """Return who decides for each loader of the script; one for all where only the command is known.

    `facts` are those of a script that the user named, wherever it lies.
    """
    if job.data_loader.inject == OVERRIDING:
        return (WorkersDecision("plan", INJECT),)
    facts = facts or script_facts(job)
    if facts is not None and facts.loaders:
        return tuple(_of_loader(job, each) for each in facts.loaders)
    return tuple(_of_probe(job)) or (_of_command(job) or _of_variables(job) or UNKNOWN,)


def script_facts(job: JobSpec) -> ScriptFacts | None:
    """Return what the text of a job's script says; None where it isn't in a folder that the job mounts from here."""
    path = script_on_this_machine(job)
    if path is None or not ITS_OWN.holds(path, Path(job.path)):
        return None
    return _read(path)


_read = functools.lru_cache(maxsize=4)(known_facts)


def arguments_of(job: JobSpec) -> tuple[str, ...] | None:
    """Return the words that a job's script gets; None where it runs none, or several commands do."""
    words = list(job_commands(job))
    found = command_script(words[0]) if len(words) == 1 and job.script is None else None
    return None if found is None else tuple(words[0][found.at + 1 :])


def _of_loader(job: JobSpec, loader: Loader) -> WorkersDecision:
    value = loader.settings["num_workers"]
    if value.kind == AUTO:
        return WorkersDecision("plan", value.text, loader.place)
    if value.kind == VARIABLE:
        return _of_variable(job, value, loader.place)
    if value.kind == OPTION and value.option is not None:
        return _of_option(job, value, loader.place)
    if value.kind == OVERRIDE:
        return _of_override(job, value)
    if value.given_by is not None and any(_words_of(job, value.given_by)):
        return WorkersDecision("unknown", "", loader.place)  # the command names another file
    if value.kind == KNOWN:
        if value.text == UNSTATED:
            kind = "plan" if job.data_loader.inject == INJECTED else "library"
            return WorkersDecision(kind, INJECT if kind == "plan" else "", loader.place, 0)
        number = value.literal if isinstance(value.literal, int) else None
        return WorkersDecision("constant", value.text, value.place or loader.place, number)
    return _of_command(job) or _of_variables(job) or WorkersDecision("unknown", "", loader.place)


def _of_override(job: JobSpec, value: Value) -> WorkersDecision:
    """Return what the command says of a key of a configuration, else what its file does."""
    words = [word.partition("=") for command in job_commands(job) for word in command]
    stated = [text for key, equals, text in words if equals and key.lstrip("+") == value.text]
    if stated:
        return _stated("override", f"{value.text}=", stated[-1])._replace(place=value.place)
    number = value.literal if isinstance(value.literal, int) else None
    return WorkersDecision("override", f"{value.text}=", value.place, number)


def _words_of(job: JobSpec, option: Option) -> Iterator[str]:
    """Yield the words of a job's commands that name an option, in whichever of its names."""
    for command in job_commands(job):
        yield from (each for each in command if each.partition("=")[0] in option.names)


def _of_option(job: JobSpec, value: Value, place: str) -> WorkersDecision:
    option = value.option
    if option is None or not option.flag or option.changed:
        return WorkersDecision("unknown", "", place)
    passed = [each for words in job_commands(job) for each in _options(given_to(words, option.names))]
    if passed:
        return passed[-1]._replace(place=place)
    number = option.default if isinstance(option.default, int) else None
    return WorkersDecision("option", f"{option.flag}=" if option.joined else f"{option.flag} ", option.place, number)


def _of_variable(job: JobSpec, value: Value, place: str) -> WorkersDecision:
    text = job.env.get(value.text)
    if text is None:
        number = value.literal if isinstance(value.literal, int) else None
        return WorkersDecision("variable", value.text, place, number)
    return _stated("variable", value.text, text)._replace(place=place)


def _stated(kind: str, name: str, text: str) -> WorkersDecision:
    if token_of(text) == PLANNED[1:-1]:
        return WorkersDecision("plan", name.rstrip("= "))
    return WorkersDecision(kind, name, number=int(text) if re.fullmatch(r"\d{1,4}", text) else None, passed=True)


def _of_command(job: JobSpec) -> WorkersDecision | None:
    """Return what an option or an override of the command says; the last of several, as every parser reads them."""
    found = [each for words in job_commands(job) if command_script(words) for each in _in_words(words)]
    return found[-1] if found else None


def _in_words(words: tuple[str, ...]) -> Iterator[WorkersDecision]:
    for at, word in enumerate(words):
        if OPTION_OF_WORKERS.fullmatch(word):
            yield from _options([option_at(words, at)])
        elif OVERRIDE_OF_WORKERS.fullmatch(word):
            name, _, value = word.rpartition("=")
            yield _stated("override", f"{name}=", value)


def _options(found: Iterable[tuple[str, str | None]]) -> Iterator[WorkersDecision]:
    """Yield what options of a command say; one without a value says nothing."""
    yield from (_stated("option", name, value) for name, value in found if value is not None)


def _of_variables(job: JobSpec) -> WorkersDecision | None:
    stated = (_stated("variable", name, text) for name, text in job.env.items() if VARIABLES_OF_WORKERS.fullmatch(name))
    return next(stated, None)


def _of_probe(job: JobSpec) -> Iterator[WorkersDecision]:
    """Yield what a probe saw: a loader that had another number than it was given has its own, at its line."""
    probe = fresh_probe(job)
    for loader in probe.loaders if probe else ():
        if loader.own_workers is not None:
            given = _of_command(job) or _of_variables(job)
            yield given or WorkersDecision("constant", "", loader.at, loader.own_workers)
