"""Texts that chance has changed: nothing is raised, everything has a place, and fixes come to an end."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from trainlaunch.formats.workload import cut
from trainlaunch.lint.linter import fixed, lint_text

from bench.lint_cases import file_name, rows
from tests.formats.readings import mutated
from tests.lint.test_fix import TEXTS
from tests.lint.texts import BOTH

CHANGED = [50, pytest.param(400, marks=pytest.mark.long)]  # of each kind's texts
PUBLIC = {
    "task.json": "ecs/task.json",
    "stack.yaml": "ecs/stack.yaml",
    ".gitlab-ci.yml": "ci/.gitlab-ci.yml",
    "Makefile": "make/Makefile",
    "README.md": "docs/README.md",
}


def texts() -> dict[str, list[str]]:
    """Return the field reports and whole files by the name of their file."""
    found: dict[str, list[str]] = {}
    for row in rows():
        found.setdefault(file_name(row), []).append(row["input"])
    for name, text in TEXTS.items():
        found.setdefault(name, []).append(text)
    for kind, name in PUBLIC.items():
        text = (Path(__file__).parent / "public" / name).read_text(encoding="utf-8")
        found.setdefault(kind, []).append(text)
    return found


@pytest.mark.parametrize("count", CHANGED)
@pytest.mark.parametrize("name", sorted(texts()))
def test_changed_texts_are_judged_and_fixed(name: str, count: int) -> None:
    """A finding's span, and an edit's, stand in the text; a fixed text has no safe fix left."""
    start = time.process_time()
    for text in mutated(texts()[name], count, seed=14):
        linted = lint_text(text, name, None, BOTH)
        for finding in linted.findings:
            assert finding.diagnostic.span is not None
            cut(text, finding.diagnostic.span)
            assert finding.diagnostic.span.line <= text.count("\n") + 1
        after = fixed(linted, None, BOTH)
        assert fixed(after, None, BOTH).text == after.text
    assert time.process_time() - start < 60


@pytest.mark.parametrize("length", [300, pytest.param(1000, marks=pytest.mark.long)])
def test_long_texts_are_judged_and_fixed_in_time_of_their_length(length: int) -> None:
    """Thousands of lines are one script; of a huge YAML text only some fixes are worked out, and all findings."""
    start = time.process_time()
    script = "".join(f"docker run --gpus all x:{number} torchrun train.py\n" for number in range(length))
    after = fixed(lint_text(script, "run.sh"))
    assert after.findings == ()
    assert after.text.count("--shm-size=2g") == length
    service = "  s{}: {{image: 'pytorch:1', gpus: all, command: torchrun train.py}}\n"
    compose = "services:\n" + "".join(service.format(number) for number in range(length))
    found = lint_text(compose, "compose.yaml").findings
    assert len(found) == length
    assert 0 < sum(each.safe for each in found) < 100
    assert time.process_time() - start < 60
