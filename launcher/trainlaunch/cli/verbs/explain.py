"""`trainlaunch explain`: what a code means, why, and what to write instead; offline."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from trainlaunch.cli.arguments.verb_table import Usage, argument
from trainlaunch.cli.output.streams import Streams, TextStyle, style_of, wrapped
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.did_you_mean import closest
from trainlaunch.errors import UsageError
from trainlaunch.manuals import Manual, find_manual, manuals

WIDEST = 120  # columns that are easily read
_MARKS = re.compile(r"\*\*(.+?)\*\*")
USAGE = Usage(
    examples=("trainlaunch explain TL201", "trainlaunch explain shm-exhausted"),
    exit_codes="0 fine, 2 no such code or name, 70 an internal error, 130 interrupted",
    arguments=(argument("code", metavar="CODE", nargs="?", help="a code or its name; without it all are listed"),),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Print one explanation, or the list of codes with their titles."""
    if args.code is None:
        for each in manuals().values():
            streams.row(f"{each.code}  {each.name}: {each.title}", 7)
        return 0
    found = find_manual(args.code)
    if found is None:
        raise UsageError([_unknown(args.code)])
    streams.result(_text(found, style_of(streams.out)))
    return 0


def _unknown(asked: str) -> Diagnostic:
    known = manuals()
    words = [*known, *(each.name for each in known.values())]
    asked_as_written = asked.upper() if asked.upper().startswith("TL") else asked.lower()
    nearest = "" if asked_as_written[2:].isdigit() else closest(asked_as_written, words)  # no number is near another
    fix = f"write {nearest}" if nearest else "run `trainlaunch explain`, which lists all codes"
    return Diagnostic("TL131", f"trainlaunch has no code or name {asked}", fix)


def _text(found: Manual, shown_as: TextStyle) -> str:
    """Return an explanation for a terminal: examples indented, and no Markdown."""
    lines = [f"**{found.code} {found.name}**", "", found.title, "", *_lines(found.explained)]
    bold = "\x1b[1m\\1\x1b[0m" if shown_as.colour else r"\1"
    return _MARKS.sub(bold, "\n".join(_filled(lines, shown_as.columns))) + "\n"


def _filled(lines: Iterable[str], columns: int | None) -> Iterator[str]:
    """Yield the lines; on a terminal, whose width is `columns`, those of a paragraph are filled again."""
    for prose, group in groupby(lines, lambda line: bool(line) and not line.startswith("    ")):
        if prose and columns is not None:
            yield wrapped(" ".join(group), min(columns, WIDEST))
        else:
            yield from group


def _lines(markdown: str) -> Iterator[str]:
    inside = False
    for line in markdown.rstrip("\n").split("\n"):
        if line.startswith("```"):
            inside = not inside
        else:
            yield f"    {line}" if inside and line else line
