"""Writes docs/troubleshooting.md from the manuals of the symptoms, so that the two can't differ."""

from __future__ import annotations

from types import ModuleType

from launcher.diagnose import SYMPTOMS

_INTRODUCTION = """\
# Why did it die?

<!-- written from launcher/diagnose/symptoms/ by `python -m launcher.diagnose.reference`; edit the modules -->

After a failure `trainlaunch up` prints one or two causes, each with the evidence for it and what to type. This page has
all of them. Where nothing names a cause it prints the evidence and guesses nothing.

Exit codes that are trainlaunch's own: 125 nothing of the job has run, 78 the preflight says that the files are wrong
(never retried), 75 that this machine is. Every other code is the job's; 128 + n means that signal n ended it.
"""


def troubleshooting_markdown() -> str:
    """Return the page: one section a symptom, in the order in which they are asked."""
    symptoms = [each for group in SYMPTOMS for each in group]
    return "\n".join([_INTRODUCTION, *(_section(each) for each in symptoms)])


def _section(symptom: ModuleType) -> str:
    manual = (symptom.__doc__ or "").strip()
    summary, _, sections = manual.partition("\n\n")
    spaced = sections.replace("\n**", "\n\n**")
    return f"## {symptom.CODE} {symptom.NAME}\n\n{summary}\n\n{spaced}\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(troubleshooting_markdown())
