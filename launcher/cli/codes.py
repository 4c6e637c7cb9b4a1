"""What each code means. Each manual stands in one place, and all are gathered here:

- a rule's on a page of launcher/manuals, a symptom's in the docstring of its module in launcher/diagnose/symptoms
- a finding's of probe in its module in launcher/measure/findings
- where one module raises a code, in that module: a constant of the code's name that holds an Explanation
- where several do, in launcher/explanations/CODE.md

Adding a code: its manual (and its module in RAISING), then `python -m launcher.cli.codes >docs/codes.md`. The tests run
the examples in it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from launcher.diagnostics import Explanation
from launcher.manuals import manuals as pages

FOLDER = Path(__file__).resolve().parent.parent / "explanations"
# Modules that hold the manuals of codes which only they raise.
RAISING: tuple[str, ...] = (
    "launcher.cli.check",
    "launcher.cli.common",
    "launcher.cli.explain",
    "launcher.cli.lint",
    "launcher.cli.lock",
    "launcher.cli.main",
    "launcher.cli.probe",
    "launcher.committed.compared",
    "launcher.committed.review",
    "launcher.init.script",
    "launcher.init.takeover.choose",
    "launcher.init.takeover.draft",
    "launcher.job.building.lock",
    "launcher.job.building.merge",
    "launcher.job.validation.code",
    "launcher.job.values.scalars",
    "launcher.lint.allowed",
    "launcher.lint.judge",
    "launcher.measure.tune.failures",
    "launcher.policy.file",
    "launcher.policy.search",
    "launcher.repository.root",
    "launcher.rules.severities",
    "launcher.run.choice",
    "launcher.run.compose.command",
    "launcher.run.docker.checks",
    "launcher.run.docker.client",
    "launcher.run.docker.facts",
    "launcher.run.docker.image",
    "launcher.run.gpu_holds",
    "launcher.run.kubernetes.api_errors",
    "launcher.run.kubernetes.kubeconfig",
    "launcher.run.kubernetes.launch",
    "launcher.run.kubernetes.objects",
    "launcher.run.local.checks",
    "launcher.run.local.state",
    "launcher.run.podman.compose",
    "launcher.run.secrets",
    "launcher.run.wording",
    "launcher.templating.environment",
    "launcher.yamltree.keys",
    "launcher.yamltree.source",
)
_INTRODUCTION = """\
# What a code means

<!-- written by `python -m launcher.cli.codes` from the manuals in launcher/; edit those -->

`trainlaunch explain CODE` prints the same offline. 1xx is about the job file and the command line, 2xx about CPUs,
memory and /dev/shm, 3xx about texts written by hand ([rules.md](rules.md) has those in full), 4xx about what a target
does not support, 5xx about the machine and its engine, 6xx is the cause of a job's death
([troubleshooting.md](troubleshooting.md) has those in full), 7xx is what a measurement found in a script, 9xx a bug of
trainlaunch. Codes are never reused.
"""


@cache
def explanations() -> dict[str, Explanation]:
    """Return every explanation by its code, in order."""
    return {each.code: each for each in sorted(manuals())}


def manuals() -> Iterator[Explanation]:
    """Yield every manual, from all places that hold some."""
    yield from _of_several_places()
    yield from _beside_the_raise()
    yield from _of_pages()
    yield from _of_symptoms()
    yield from _of_findings()


def explanation(asked: str) -> Explanation | None:
    """Return the explanation of a code or name; letters in any case, `_` as `-`. None where there is none."""
    known = explanations()
    by_name = {each.name: each for each in known.values()}
    return known.get(asked.upper()) or by_name.get(asked.lower().replace("_", "-"))


def _of_several_places() -> Iterator[Explanation]:
    for path in FOLDER.glob("*.md"):
        heading, title, sections = path.read_text(encoding="utf-8").split("\n\n", 2)
        code, name = heading.removeprefix("# ").split()
        yield Explanation(code, name, " ".join(title.split()), sections)


def _beside_the_raise() -> Iterator[Explanation]:
    for name in RAISING:
        found = vars(importlib.import_module(name)).items()
        yield from (value for name, value in found if isinstance(value, Explanation) and value.code == name)


def _of_pages() -> Iterator[Explanation]:
    for each in pages().values():
        yield Explanation(each.code, each.name, each.title, each.explained)


def _of_symptoms() -> Iterator[Explanation]:
    from launcher.diagnose import SYMPTOMS

    for symptom in SYMPTOMS:
        title, sections = _docstring(symptom)
        yield Explanation(symptom.CODE, symptom.NAME, title, sections.replace("\n**", "\n\n**") + "\n")


def _of_findings() -> Iterator[Explanation]:
    from launcher.measure.finding import defects, manual_of

    yield from (manual for each in defects() if (manual := manual_of(each)) is not None)


def _docstring(module: ModuleType) -> tuple[str, str]:
    """Return the title and the sections of a module's manual."""
    title, _, sections = (module.__doc__ or "").strip().partition("\n\n")
    return " ".join(title.split()), sections


def is_symptom(code: str) -> bool:
    """Whether docs/troubleshooting.md has the code in full."""
    return code.startswith("TL6")


def _page(code: str) -> str:
    """Return which other page of docs/ has a code in full; empty for those that docs/codes.md has."""
    from launcher.rules.reference import is_of_texts_alone
    from launcher.rules.text_findings import RULES

    if is_of_texts_alone(code) and any(code == each.code for each in RULES):
        return "rules.md"
    return "troubleshooting.md" if is_symptom(code) else ""


def codes_markdown() -> str:
    """Return docs/codes.md: a table of all codes, then each that no other page has in full."""
    known = explanations().values()
    rows = "".join(f"| [{each.code}]({_link(each)}) | {each.name} | {each.title} |\n" for each in known)
    full = [each for each in known if not _page(each.code)]
    told = (f"## {each.code} {each.name}\n\n{each.title}\n\n{each.sections}" for each in full)
    return "\n".join([_INTRODUCTION, "| code | name | what it says |\n|---|---|---|\n" + rows, *told])


def _link(each: Explanation) -> str:
    return f"{_page(each.code)}#{each.code.lower()}-{each.name}"


if __name__ == "__main__":
    import sys

    sys.stdout.write(codes_markdown())
