"""Writes docs/troubleshooting.md from the manuals of the symptoms, so that the two can't differ."""

from __future__ import annotations

import re

from trainlaunch.diagnose import SYMPTOMS
from trainlaunch.diagnose.base.case import Symptom
from trainlaunch.manuals import manuals

_INTRODUCTION = """\
# Why did it die?

<!-- written from trainlaunch/manuals/ by `python -m trainlaunch.diagnose.troubleshooting_page`; edit those -->

After a failure `trainlaunch run` and `up` print one or two causes, each with its evidence and the command to type.
[`trainlaunch doctor`](doctor.md) does the same for a log from anywhere. This table lists all causes by what is on the
screen. Where the evidence names no cause, the evidence is printed and nothing is guessed.

@TABLE@

[exit-codes.md](exit-codes.md) lists the exit codes.
"""


def troubleshooting_markdown() -> str:
    """Return the page: a table by what stands on the screen, in the order of causes."""
    symptoms = sorted(SYMPTOMS, key=lambda each: each.name != "shm-exhausted-bus-error")
    rows = "".join(f"| {_screen(each)} | [{each.name}](codes/{each.code}.md) |\n" for each in symptoms)
    table = f"| on the screen | cause |\n|---|---|\n{rows}".rstrip()
    return _INTRODUCTION.replace("@TABLE@", table)


def _screen(symptom: Symptom) -> str:
    """Return the texts that a manual says are seen, for a cell of a table."""
    seen = manuals()[symptom.code].sections.partition("**What you see**:")[2].partition("\n**")[0]
    texts = re.findall(r"`([^`]+)`", seen)
    shown = (" ".join(each.split()).replace("|", "\\|") for each in texts)
    return ", ".join(f"`{each}`" for each in shown) or " ".join(seen.split()).rstrip(".")


if __name__ == "__main__":
    import sys

    sys.stdout.write(troubleshooting_markdown())
