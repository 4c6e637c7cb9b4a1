"""What each code means: launcher/explanations/CODE.md, and for symptoms the manual of their own module.

Adding a code: one file in launcher/explanations, then `python -m launcher.cli.codes >docs/codes.md`. The tests run the
examples in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parent.parent / "explanations"
_INTRODUCTION = """\
# What a code means

<!-- written from launcher/explanations/ by `python -m launcher.cli.codes`; edit the files there -->

`trainlaunch explain CODE` prints the same offline. 1xx is about the job file and the command line, 2xx about CPUs,
memory and /dev/shm, 4xx about what a target can't say, 5xx about the machine and its engine, 6xx is the cause of a
job's death ([troubleshooting.md](troubleshooting.md) has those in full), 9xx a bug of trainlaunch. Codes are never
reused.
"""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One code: its `name`, a `title` of one paragraph, and the sections after it as Markdown; `symptom`: a 6xx."""

    code: str
    name: str
    title: str
    sections: str
    symptom: bool = False


@cache
def explanations() -> dict[str, Explanation]:
    """Return every explanation by its code, in order."""
    found = [*_written(), *_symptoms()]
    return {each.code: each for each in sorted(found, key=lambda each: each.code)}


def explanation(asked: str) -> Explanation | None:
    """Return the explanation of a code or name; letters in any case, `_` as `-`. None where there is none."""
    known = explanations()
    by_name = {each.name: each for each in known.values()}
    return known.get(asked.upper()) or by_name.get(asked.lower().replace("_", "-"))


def _written() -> Iterator[Explanation]:
    for path in FOLDER.glob("*.md"):
        heading, title, sections = path.read_text(encoding="utf-8").split("\n\n", 2)
        code, name = heading.removeprefix("# ").split()
        yield Explanation(code, name, " ".join(title.split()), sections)


def _symptoms() -> Iterator[Explanation]:
    from launcher.diagnose import SYMPTOMS

    for symptom in (each for group in SYMPTOMS for each in group):
        yield _of_symptom(symptom)


def _of_symptom(symptom: ModuleType) -> Explanation:
    title, _, sections = (symptom.__doc__ or "").strip().partition("\n\n")
    spaced = sections.replace("\n**", "\n\n**") + "\n"
    return Explanation(symptom.CODE, symptom.NAME, " ".join(title.split()), spaced, symptom=True)


def codes_markdown() -> str:
    """Return docs/codes.md: a table of all codes, then each that is no symptom in full."""
    known = explanations().values()
    rows = "".join(f"| [{each.code}]({_link(each)}) | {each.name} | {each.title} |\n" for each in known)
    full = (f"## {each.code} {each.name}\n\n{each.title}\n\n{each.sections}" for each in known if not each.symptom)
    return "\n".join([_INTRODUCTION, "| code | name | what it says |\n|---|---|---|\n" + rows, *full])


def _link(each: Explanation) -> str:
    return f"{'troubleshooting.md' * each.symptom}#{each.code.lower()}-{each.name}"


if __name__ == "__main__":
    import sys

    sys.stdout.write(codes_markdown())
