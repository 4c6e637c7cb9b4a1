"""Writes docs/codes.md from the manuals in launcher/trainlaunch/manuals, so that the two can't differ."""

from __future__ import annotations

import sys

from trainlaunch.manuals import Manual, manuals

_INTRODUCTION = """\
# What a code means

<!-- written by `python -m trainlaunch.cli.codes_page` from the manuals in launcher/; edit those -->

`trainlaunch explain CODE` prints the same offline. 1xx is about the job file and the command line, 2xx about CPUs,
memory and /dev/shm, 3xx about texts written by hand ([rules.md](rules.md) has those in full), 4xx about what a target
does not support, 5xx about the machine and its engine, 6xx is the cause of a job's death
([troubleshooting.md](troubleshooting.md) has those in full), 7xx is what a measurement found in a script, 9xx a bug of
trainlaunch. Codes are never reused.
"""


def _page(code: str) -> str:
    """Return which other page of docs/ has a code in full; empty for those that docs/codes.md has."""
    from trainlaunch.rules.rules_page import is_of_texts_alone
    from trainlaunch.rules.text_findings import RULES

    if is_of_texts_alone(code) and any(code == each.code for each in RULES):
        return "rules.md"
    return "troubleshooting.md" if code.startswith("TL6") else ""


def codes_markdown() -> str:
    """Return docs/codes.md: a table of all codes, then each that no other page has in full."""
    known = manuals().values()
    rows = "".join(f"| [{each.code}]({_link(each)}) | {each.name} | {each.title} |\n" for each in known)
    full = [each for each in known if not _page(each.code)]
    told = (f"## {each.code} {each.name}\n\n{each.title}\n\n{each.explained}" for each in full)
    return "\n".join([_INTRODUCTION, "| code | name | what it says |\n|---|---|---|\n" + rows, *told])


def _link(each: Manual) -> str:
    return f"{_page(each.code)}#{each.code.lower()}-{each.name}"


if __name__ == "__main__":
    sys.stdout.write(codes_markdown())
