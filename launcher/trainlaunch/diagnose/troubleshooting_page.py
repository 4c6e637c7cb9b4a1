"""Writes docs/troubleshooting.md from the manuals of the symptoms, so that the two can't differ."""

from __future__ import annotations

import re

from trainlaunch.diagnose import SYMPTOMS
from trainlaunch.diagnose.base.case import Symptom
from trainlaunch.manuals import manuals

_INTRODUCTION = """\
# Why did it die?

<!-- written from trainlaunch/manuals/ by `python -m trainlaunch.diagnose.troubleshooting_page`; edit those -->

After a failure `trainlaunch up` prints one or two causes, each with the evidence for it and what to type. This page has
all of them, by what stands on the screen; [doctor.md](doctor.md) has `trainlaunch doctor`. Where nothing names a cause
the evidence is printed and nothing is guessed.

@TABLE@

Exit codes that are trainlaunch's own: 125 nothing of the job has run, 78 the preflight says that the files are wrong
(never retried), 75 that this machine is. Every other code is the job's; 128 + n means that signal n ended it.
"""


def troubleshooting_markdown() -> str:
    """Return the page: what stands on the screen first, then one section a symptom, in the order of causes."""
    symptoms = sorted(SYMPTOMS, key=lambda each: each.name != "shm-exhausted-bus-error")
    rows = "".join(f"| {_screen(each)} | [{each.name}](#{_anchor(each)}) |\n" for each in symptoms)
    table = f"| on the screen | cause |\n|---|---|\n{rows}".rstrip()
    return "\n".join([_INTRODUCTION.replace("@TABLE@", table), *(_section(each) for each in SYMPTOMS)])


def _anchor(symptom: Symptom) -> str:
    return f"{symptom.code.lower()}-{symptom.name}"


def _screen(symptom: Symptom) -> str:
    """Return the texts that a manual says are seen, for a cell of a table."""
    seen = manuals()[symptom.code].sections.partition("**What you see**:")[2].partition("\n**")[0]
    texts = re.findall(r"`([^`]+)`", seen)
    shown = (" ".join(each.split()).replace("|", "\\|") for each in texts)
    return ", ".join(f"`{each}`" for each in shown) or " ".join(seen.split()).rstrip(".")


def _section(symptom: Symptom) -> str:
    _, name, title, sections, _ = manuals()[symptom.code]
    return f"## {symptom.code} {name}\n\n{title}\n\n{sections}"


if __name__ == "__main__":
    import sys

    sys.stdout.write(troubleshooting_markdown())
