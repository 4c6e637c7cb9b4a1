"""The hooks for pre-commit name verbs that are there and files that lint reads."""

from __future__ import annotations

import re
from typing import Any

import pytest
from trainlaunch.cli.arguments.verb_table import VERBS
from trainlaunch.lint.file_kinds import kind_of

from tests import plain_yaml
from tests.conftest import ROOT
from tests.lint.test_fix import TEXTS

HOOKS = plain_yaml.load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
BODIES = {**TEXTS, "ecs/task-definition.json": '{"containerDefinitions": []}'}


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_runs_a_verb_of_the_installed_command(hook: dict[str, Any]) -> None:
    """pre-commit installs this repository, with what patterns of a policy need, and runs the entry."""
    program, verb, *options = hook["entry"].split()
    assert (program, verb in VERBS, hook["language"]) == ("trainlaunch", True, "python")
    assert set(options) <= {"--fix", "--files-from-hook"}
    assert hook["additional_dependencies"] == [".[policy]"]


@pytest.mark.parametrize("name", ["notes.txt", "run.sh.bak", "package.json", "Dockerfiles/readme.adoc"])
def test_other_files_do_not(name: str) -> None:
    """A commit of them starts nothing."""
    assert not any(re.search(hook["files"], name) for hook in HOOKS)


@pytest.mark.parametrize("name", [*BODIES, "docker/Dockerfile.gpu", "Containerfile", "train.py", "a/b.yml"])
def test_files_of_every_kind_reach_the_hook(name: str) -> None:
    """What it isn't given it can't judge."""
    (files,) = {hook["files"] for hook in HOOKS if " lint" in hook["entry"]}
    assert re.search(files, name)
    assert kind_of(name, BODIES.get(name, "FROM x\nservices: {a: {image: DataLoader}}\n")).name is not None
