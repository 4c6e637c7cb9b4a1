"""Whatever stands in a job file, the answer is a job or a list of errors with places."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from trainlaunch.errors import JobFileRejected
from trainlaunch.job.fields.table import rows
from trainlaunch.job.spec import JobSpec
from trainlaunch.policy import read_job

from tests import plain_yaml
from tests.sampling import examples

VALID = [path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parent / "valid").glob("*.yaml"))]
MINIMAL = "name: job\nimage: trainer:1\ncommand: [python, train.py]\n"
NAMES = sorted({path.rpartition(".")[2].removesuffix("[]") for path, _ in rows()})
SCALARS = st.sampled_from(
    ["", "~", "no", "on", "1e3", "08", "0o14", "0x1F", "1_000", "12:30", ".inf", ".nan", "-1", "0", "1", "16", "8G",
     "8Gi", "512m", "1.5", "auto", "all", "30s", "2024-01-01", "=", "<<", "true", "bind", "docker", "kubernetes",
     "/dev/shm", "./src", "9" * 400, "٣", "nvidia.com/gpu", "float32", "{num_workers}", "a/b", "*", "&a", "!x"]
)  # fmt: skip
VALUES = st.recursive(
    SCALARS | st.integers() | st.booleans() | st.none() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES) | SCALARS, inner, max_size=5),
    max_leaves=20,
)
TARGETS = st.sampled_from([None, "docker", "compose", "kubernetes", "local", ""])
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
# What a double-quoted scalar can hold, and an argument too: no NUL, no surrogates.
CARRIED = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@contextmanager
def job_file(content: str | bytes) -> Iterator[Path]:
    """Give a file with this content."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "job.yaml"
        path.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
        yield path


def answered(content: str | bytes, target: str | None = None, sets: tuple[str, ...] = ()) -> JobSpec | None:
    """Return the job, or None where it was refused with ordered errors; anything else fails the test."""
    with job_file(content) as path:
        try:
            return read_job(path, target=target, sets=sets)
        except JobFileRejected as rejected:
            found = rejected.diagnostics
    assert found
    places = [(each.span.line, each.span.column) for each in found if each.span and each.span.file == str(path)]
    assert places == sorted(places)
    assert len(set(found)) == len(found)
    assert all(each.message and each.fix and "\n" not in each.message + each.fix for each in found)
    return None


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=200) | ANY_TEXT)
def test_any_bytes_are_answered(content: str | bytes) -> None:
    """Arbitrary files never crash the reader."""
    answered(content)


@settings(max_examples=examples(200), deadline=None)
@given(st.text("abc:-?[]{}#&*!|>'\"%@` \n\t,<~.x0", max_size=60), TARGETS)
def test_any_punctuation_is_answered(text: str, target: str | None) -> None:
    """YAML's own characters in any order never crash the reader."""
    answered(MINIMAL + text, target)


@settings(max_examples=examples(200), deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=6), TARGETS)
def test_any_tree_of_known_names_is_answered(tree: dict[str, Any], target: str | None) -> None:
    """Known names with values of any shape, in any place, never crash the reader."""
    answered(plain_yaml.dump({"name": "job", "image": "trainer:1", **tree}, allow_unicode=True), target)


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from(VALID), st.data(), TARGETS)
def test_a_damaged_job_is_answered(text: str, data: st.DataObject, target: str | None) -> None:
    """A good file with a piece cut out, doubled or replaced never crashes the reader."""
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    put = data.draw(SCALARS | st.sampled_from([text[start:end] * 2, "\n", ": ", "- ", '"', "[", "}"]))
    answered(text[:start] + put + text[end:], target)


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.sampled_from(NAMES) | st.sampled_from(["0", "1", "-1", "", "x.y"]), max_size=4),
    SCALARS | ANY_TEXT,
    TARGETS,
)
def test_any_set_is_answered(parts: list[str], value: str, target: str | None) -> None:
    """--set of any path with any text never crashes the reader."""
    answered(VALID[0], target, (f"{'.'.join(parts)}={value}",))


@settings(max_examples=examples(200), deadline=None)
@given(CARRIED)
def test_every_string_arrives_as_written(value: str) -> None:
    """Anything that an argument can carry, written with YAML's escapes, is what env, labels and command get."""
    quoted = "".join(f"\\U{ord(letter):08x}" if not re.match(r"[\w ]", letter) else letter for letter in value)
    fields = f'command: [python, "{quoted}"]\nenv: {{A: "{quoted}"}}\nlabels: {{a: "{quoted}"}}\n'
    text = f"name: job\nimage: trainer:1\n{fields}"
    found = answered(text)
    assert found is not None
    assert (found.command, found.env, found.labels) == (("python", value), {"A": value}, {"a": value})


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(1, 2**31 - 1))
def test_integers_arrive_and_their_quoted_spelling_does_not(number: int) -> None:
    """8 is eight; "8" is an error whose fix is 8."""
    found = answered(f"{MINIMAL}data_loader: {{batch_size: {number}}}\n")
    assert found is not None
    assert found.data_loader.loaders[0].batch_size == number
    assert answered(f'{MINIMAL}data_loader: {{batch_size: "{number}"}}\n') is None


def test_reading_imports_nothing_heavy() -> None:
    """The reader starts without the packages that only renderers and runners need."""
    heavy = ["docker", "kubernetes", "jinja2", "rich", "pydantic", "torch", "difflib", "requests"]
    code = (
        "import json, sys; from pathlib import Path; from trainlaunch.policy import read_job;"
        "read_job(Path(sys.argv[1])); print(json.dumps(sorted(sys.modules)))"
    )
    with job_file(MINIMAL) as path:
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert not set(heavy) & set(json.loads(done.stdout))
