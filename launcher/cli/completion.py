"""`trainlaunch completion`: the completion script of a shell, written from the parser itself."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator
from dataclasses import dataclass

from launcher.cli.streams import Streams

EXAMPLES = (
    "source <(trainlaunch completion bash)  # in ~/.bashrc, or zsh and ~/.zshrc after compinit",
    "trainlaunch completion fish > ~/.config/fish/completions/trainlaunch.fish",
)
EXIT_CODES = "0 fine, 2 usage, 70 a bug of ours, 130 interrupted"
SHELLS = ("bash", "zsh", "fish")
# What stands for an argument in the help says what completes it; any other word completes nothing.
ENDINGS = {"JOB": ("yaml", "yml"), "SCRIPT": ("py",)}
ANY_FILE = {"FILE", "PATH", "PATHS"}
FOLDER = "DIR"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a verb; `flags` is empty for a positional one.

    Its value is one of `words`, or a file with one of `endings` (`` takes any file), or a folder, or free text.
    """

    flags: tuple[str, ...]
    summary: str
    takes_value: bool
    repeats: bool
    words: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    folder: bool = False


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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the shell."""
    parser.add_argument("shell", choices=SHELLS, help="the shell that reads the script")


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Print the script."""
    from launcher.cli import shells

    write = {"bash": shells.bash, "zsh": shells.zsh, "fish": shells.fish}[args.shell]
    streams.result(write(tuple(verbs())))
    return 0


def verbs() -> Iterator[Verb]:
    """Yield each verb as its own parser has it."""
    from launcher.cli.main import VERBS

    for name, summary in VERBS.items():
        parser = argparse.ArgumentParser()
        importlib.import_module(f"launcher.cli.{name}").add_arguments(parser)
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
    )


def _words(action: argparse.Action) -> tuple[str, ...]:
    if action.metavar == "CODE":
        from launcher.cli.codes import explanations

        return tuple(word for each in explanations().values() for word in (each.code, each.name))
    return tuple(str(each) for each in action.choices or ())
