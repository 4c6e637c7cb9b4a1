"""The verbs and their arguments as their own parsers have them: what a completion script is written from."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator
from dataclasses import dataclass

from trainlaunch.cli.arguments.verb_table import VERBS

# What stands for an argument in the help says what completes it; any other word completes nothing.
ENDINGS = {"JOB": ("yaml", "yml"), "RUN": ("yaml", "yml"), "SCRIPT": ("py",)}
RUN = "RUN"
ANY_FILE = {"FILE", "PATH", "PATHS"}
FOLDER = "DIR"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a verb; `flags` is empty for a positional one.

    Its value is one of `words`, or a file with one of `endings` (`` takes any file), or a folder, or free text; where
    it may be a run, what `ps --output names` lists too.
    """

    flags: tuple[str, ...]
    summary: str
    takes_value: bool
    repeats: bool
    words: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    folder: bool = False
    run: bool = False


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb with its arguments, `--help` included."""

    name: str
    summary: str
    arguments: tuple[Argument, ...]

    @property
    def options(self) -> Iterator[Argument]:
        """Those that start with a dash."""
        return (each for each in self.arguments if each.flags)

    @property
    def positionals(self) -> Iterator[Argument]:
        """Those that don't."""
        return (each for each in self.arguments if not each.flags)


def verbs() -> Iterator[Verb]:
    """Yield each verb as its own parser has it."""
    for name, summary in VERBS.items():
        parser = argparse.ArgumentParser()
        importlib.import_module(f"trainlaunch.cli.verbs.{name}").add_arguments(parser)
        yield Verb(name, summary, tuple(_argument(action) for action in parser._actions))


def _argument(action: argparse.Action) -> Argument:
    metavar = str(action.metavar)
    endings = ENDINGS.get(metavar, ())
    return Argument(
        flags=tuple(sorted(action.option_strings, key=len, reverse=True)),
        summary=" ".join((action.help or "").split()),
        takes_value=action.nargs != 0,
        repeats=isinstance(action, argparse._AppendAction) or action.nargs in {"*", "+"},
        words=_words(action),
        endings=("",) if metavar in ANY_FILE else endings,
        folder=metavar == FOLDER,
        run=metavar == RUN,
    )


def _words(action: argparse.Action) -> tuple[str, ...]:
    if action.metavar == "CODE":
        from trainlaunch.manuals import manuals

        return tuple(word for each in manuals().values() for word in (each.code, each.name))
    return tuple(str(each) for each in action.choices or ())
