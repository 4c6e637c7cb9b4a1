"""Plain values written as YAML come back as they were, at every reader that is tried."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from trainlaunch.render import render
from trainlaunch.render.apply_patch import documents_of
from trainlaunch.yamltree.emitter import yaml_block, yaml_string

from tests.render.jobs import JOBS, TARGETS, job_plan
from tests.render.readers import kubectl_json
from tests.sampling import examples

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
FOLDED = re.compile(r"^( *)(\S+: )>-\n((?:\1  .*\n)+)", re.MULTILINE)  # which the templates alone write
WORDS = TEXTS | st.sampled_from(["yes", "n", "1e3", "08", "0o14", "~", "null", "- a", "a: b", "|", "a\nb\n", " a\n b"])
LEAVES = WORDS | st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.sampled_from([0.5, 1e-7, 1e21, -2.25])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3), max_leaves=12
)


@settings(max_examples=examples(300), deadline=None)
@given(st.dictionaries(WORDS, VALUES, max_size=4))
def test_what_is_written_is_read_back(value: dict[str, Any]) -> None:
    """Types, order and every character; PyYAML's two readers agree."""
    text = f"{yaml_block(value)}\n"
    for loader in (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        found = yaml.load(text, loader)  # noqa: S506
        assert found == value
        assert repr(found) == repr(value)


def _on_one_line(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}{yaml_string(' '.join(match[3].split()))}\n"


@pytest.mark.parametrize("target", [each for each in TARGETS if each != "docker"])
@pytest.mark.parametrize("job", [each for each in JOBS if each != "full"])  # full has texts that the templates escape
def test_a_rendering_written_again_is_itself(job: str, target: str) -> None:
    """Except for comments between lines, and quotes of keys that need none: the style is the templates' own."""
    text = FOLDED.sub(_on_one_line, render(job_plan(job, target)))
    again = "---\n".join(f"{yaml_block(each)}\n" for each in documents_of(text))
    kept = {line.replace('"', "") for line in again.splitlines()}
    bare = (line.replace('"', "") for line in text.splitlines())
    lost = [line for line in bare if not {line, line.split(" # ")[0]} & kept]
    assert [line for line in lost if not line.lstrip().startswith("# ")] == []
    assert documents_of(again) == documents_of(text)


def test_kubectl_reads_the_same() -> None:
    """Go's reader, on spellings that YAML 1.1 and 1.2 take differently."""
    value = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x"},
        "data": {"yes": "no", "on": "1e3", "08": "0o14", "lines": "a $b\n  c\n", "empty": "", "é": "\t\u2028"},
    }
    found = kubectl_json(f"{yaml_block(value)}\n")
    del found["metadata"]["labels"]
    assert found == value
