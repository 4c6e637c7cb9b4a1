"""Where the command begins that somebody typed without `--`, and what to type instead."""

from __future__ import annotations

import argparse
import shlex
import shutil
from typing import NamedTuple


class MissingDashes(NamedTuple):
    """What is wrong with words of which nobody can say whose they are, and the line to write."""

    message: str
    fix: str


def missing_dashes(parser: argparse.ArgumentParser, words: list[str]) -> MissingDashes | None:
    """Return what is said where options follow the first word of a command without `--`; None where none do.

    It is asked before argparse reads the words, which would take the command's `--out` for the beginning of `--output`.
    """
    at = _command_at(parser, words)
    if at is None or {"-h", "--help"} & {*words} or words[at].endswith((".yaml", ".yml")):
        return None
    if not any(_is_option(parser, each) for each in words[at + 1 :]):
        return None
    is_script = words[0] == "run" and words[at].endswith(".py") and shutil.which(words[at]) is None
    starter = ["--", "python"] if is_script else ["--"]
    line = shlex.join(["trainlaunch", *words[:at], *starter, *words[at:]])
    return MissingDashes(f"options follow {words[at]}, and no `--` says whose they are", f"write `{line}`")


def _command_at(parser: argparse.ArgumentParser, words: list[str]) -> int | None:
    """Return where a command begins, behind our options with their values and our own words; None without one."""
    own = sum(not each.option_strings and each.dest != "command" for each in parser._actions)
    options = parser._option_string_actions
    at = 1
    while at < len(words):
        if _is_option(parser, words[at]):
            name, joined, _ = words[at].partition("=")
            near = {each for option, each in options.items() if option.startswith(name)}
            option = options.get(name) or (near.pop() if len(near) == 1 else None)
            if option is None:
                return None  # argparse says what is wrong with it
            at += not joined and option.nargs is None
        elif own:
            own -= 1
        else:
            return at
        at += 1
    return None


def _is_option(parser: argparse.ArgumentParser, word: str) -> bool:
    """Whether argparse takes a word for an option: `-` is none, nor is a negative number."""
    return word.startswith("-") and word != "-" and not parser._negative_number_matcher.match(word)
