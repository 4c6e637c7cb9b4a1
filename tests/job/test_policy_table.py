"""The table of a policy's fields: the page and the schema follow it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from trainlaunch.job.fields.table import JOB
from trainlaunch.policy.fields import DEFAULTS
from trainlaunch.policy.policy_reference import policy_markdown, policy_schema

from tests import plain_yaml
from tests.conftest import ROOT, Runs

PAGE, FIELDS = ROOT / "docs/policy.md", ROOT / "docs/policy-fields.md"
TABLE = re.compile(r"(?<=<!-- fields: written by `make regen` -->\n).*?(?=<!-- end)", re.S)
EXAMPLE = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def with_table(page: str) -> str:
    """Return the page with the table as it is now."""
    return TABLE.sub(lambda _: policy_markdown(), page)


def complaints(document: Any) -> list[str]:
    """Return what the schema says about a policy."""
    return [each.message for each in jsonschema.Draft202012Validator(policy_schema()).iter_errors(document)]


def test_the_page_is_current(golden: Callable[[Path, str], None]) -> None:
    """docs/policy-fields.md holds the table."""
    page = FIELDS.read_text(encoding="utf-8")
    assert len(TABLE.findall(page)) == 1
    golden(FIELDS, with_table(page))


def test_defaults_take_every_field_but_two() -> None:
    """A field that the job file gains is one that a policy can give."""
    assert {each.name for each in JOB.fields} - {each.name for each in DEFAULTS.fields} == {"name", "policy"}


def test_the_example_of_the_page_is_a_policy(trainlaunch: Runs, tmp_path: Path) -> None:
    """An editor shows no error in it, and a job that follows it plans."""
    example = EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))[0]
    assert complaints(plain_yaml.load(example)) == []
    (tmp_path / "trainlaunch-policy.yaml").write_text(example)
    (tmp_path / "job.yaml").write_text(
        f"name: job\nimage: pytorch/pytorch@sha256:{'0' * 64}\ncommand: [python, train.py]\n"
        'labels: {team: vision, cost-center: "1234"}\nresources: {cpus: 8, memory: 32Gi, gpus: 1}\n'
    )
    done = trainlaunch("plan", "job.yaml", "--why", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\npull_policy +always +=\s+default of the policy", done.stdout)


@pytest.mark.parametrize(
    "policy",
    [
        {"maximum": {}},
        {"max": {"memory": "8G"}},
        {"max": {"gpus": -1}},
        {"max": {"colour": 1}},
        {"defaults": {"name": "x"}},
        {"defaults": {"colour": 1}},
        {"defaults": {"target_overrides": {"podman": {}}}},
        {"required_labels": "team"},
        {"required_labels": []},
        {"allowed_registries": ["pytorch"]},
        {"require_digest": "yes"},
    ],
    ids=str,
)
def test_the_schema_refuses_what_the_reader_refuses(trainlaunch: Runs, tmp_path: Path, policy: dict[str, Any]) -> None:
    """An editor and a start agree."""
    assert complaints(policy)
    (tmp_path / "trainlaunch-policy.yaml").write_text(plain_yaml.dump(policy))
    (tmp_path / "job.yaml").write_text("name: job\nimage: trainer:1\ncommand: [python, train.py]\n")
    done = trainlaunch("plan", "job.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert "--> trainlaunch-policy.yaml:" in done.stderr


def test_the_schema_is_printed(trainlaunch: Runs) -> None:
    """`trainlaunch schema policy` prints it; without a word it is the job file's."""
    assert json.loads(trainlaunch("schema", "policy").stdout) == policy_schema()
    assert json.loads(trainlaunch("schema").stdout)["title"] == "trainlaunch job file"
