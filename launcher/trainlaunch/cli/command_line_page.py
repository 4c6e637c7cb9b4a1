"""Writes docs/command-line.md from what the commands declare, so that the page and `--help` can't differ."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator

from trainlaunch.cli.arguments.verb_table import VERB_GROUPS, Argument, ArgumentGroup, Usage

_INTRODUCTION = """\
# Command line

<!-- written by `python -m trainlaunch.cli.command_line_page` from launcher/trainlaunch/cli/verbs/; edit those -->

`trainlaunch COMMAND --help` prints the same in a terminal. `trainlaunch --version` prints the version.
[exit-codes.md](exit-codes.md) explains the exit codes, [json.md](json.md) the JSON documents.
"""

_CODE = re.compile(r"[,;] (?=\d)")  # what stands between two codes of a usage


def command_line_markdown() -> str:
    """Return the page: a table of the commands in the groups of `--help`, then a section a command."""
    rows = [
        f"| [{verb}](#{verb}) | {summary} | {group} |"
        for group, verbs in VERB_GROUPS.items()
        for verb, summary in verbs.items()
    ]
    table = "\n".join(["| command | what it does | group |", "|---|---|---|", *rows])
    sections = [_section(verb, summary) for verbs in VERB_GROUPS.values() for verb, summary in verbs.items()]
    return "\n".join([_INTRODUCTION, table, "", *sections])


def _section(verb: str, summary: str) -> str:
    usage: Usage = importlib.import_module(f"trainlaunch.cli.verbs.{verb}").USAGE
    rows = list(_rows(usage.arguments))
    table = ["| argument | meaning |", "|---|---|", *rows, ""] if rows else []
    examples = ["```text", *usage.examples, "```", ""]
    codes = "\n".join(["Exit codes:", "", *(f"- {each}" for each in _CODE.split(usage.exit_codes)), ""])
    return "\n".join([f"## {verb}", "", f"{summary[:1].upper()}{summary[1:]}.", "", *examples, *table, codes])


def _rows(stated: tuple[Argument | ArgumentGroup, ...]) -> Iterator[str]:
    for each in stated:
        if isinstance(each, ArgumentGroup):
            if each.title:
                yield f"| **{each.title}** | {_cell(each.description)} |"
            yield from _rows(each.arguments)
        else:
            yield f"| {_spelling(each)} | {_cell(str(each.options.get('help', '')))} |"


def _spelling(each: Argument) -> str:
    """Return an argument as it is typed, with what it takes."""
    options = each.options
    takes_value = "action" not in options or options["action"] == "append"
    value = options.get("metavar") or ("|".join(options["choices"]) if options.get("choices") else "")
    if not each.names[0].startswith("-"):
        return f"`{_cell(str(value or each.names[0]))}`"
    value = value or each.names[-1].lstrip("-").replace("-", "_").upper()
    return ", ".join(f"`{name}`" for name in each.names) + (f" `{_cell(str(value))}`" if takes_value else "")


def _cell(text: str) -> str:
    return " ".join(text.replace("%%", "%").split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(command_line_markdown())
