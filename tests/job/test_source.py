"""YAML text becomes nodes with their source spelling and place, the same from libyaml and from PyYAML's own parser."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from trainlaunch.diagnostics import Diagnostic, Report
from trainlaunch.errors import JobFileRejected
from trainlaunch.policy import read_job
from trainlaunch.yamltree.strict import MappingNode, Node, ScalarNode, SequenceNode, parse_yaml

from tests import plain_yaml

DOCUMENTS = (
    "env: {A: no, B: 'x y', é: \"ü\\n\"}\n",
    "s: |\n  abc\n  def\n\nb: >-\n  x\n  y\nc: 1\n",
    "a:\n  - b\n  - {c: d,\n     e: f}\n  -\n    g: h\n\n\n# c\nz: 1\n",
    "a: plain\n  multi\n  line\nb: 'q\n  r'\n",
    "x: &a [1, 2]\ny: *a\n<<: {q: 1}\n",
    "\ufeffname: é\nb: '𝛑' # 𝛑\nc: d\n",
    "a: 1\r\nb:\r\n  - c\r\n",
    "a: b: c\n",
    "a: é: c\n",
    "a: [1, 2\nb: 3\n",
    "a: {b: 1\nc: 2\n",
    "name: a\n\tx: y\n",
    'a: "xy\nb: 1\n',
    "a: 'xy\n",
    "a: @x\n",
    "a: *\n",
    "a: !e!x b\n",
    "a: >-5 x\n",
    "a:\n  - b\n c: d\n",
    "a:\n  - b\n  c: d\n",
    "a: - b\n",
    "a:\n- b\nc\n",
    "a: 1\n---\nb: 1\n",
    "a: 1\n...\nb: 1\n",
    "a: 1\na: 2\n",
    "? [a]\n: b\n",
)


def parsed(text: str) -> tuple[Node | None, tuple[Diagnostic, ...]]:
    """Return the tree of `text` and what is said about it."""
    report = Report()
    node = parse_yaml(text, "job.yaml", report)
    return node, report.sorted()


def mapping(text: str) -> MappingNode:
    """Return the tree of a text that is a mapping without errors."""
    node, found = parsed(text)
    assert isinstance(node, MappingNode)
    assert not found
    return node


@pytest.mark.parametrize("text", DOCUMENTS)
def test_both_parsers_agree(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees, spans and messages are the same where PyYAML was built without libyaml."""
    assert yaml.__with_libyaml__
    fast = parsed(text)
    monkeypatch.delattr(yaml, "CSafeLoader")
    assert parsed(text) == fast


@pytest.mark.parametrize(
    "text", ["a: b\n", "é: 'ü'\n", "𝛑: 𝛑 # c\n", "\ufeffa:   b  # c\n", "'a b': \"c\\n\"\n", "a: é é\r\n"]
)
def test_spans_cut_the_value_out_of_its_line(text: str) -> None:
    """Columns are 1-based and count characters; the end is exclusive; a byte order mark counts for nothing."""
    line = text.removeprefix("\ufeff")
    for key, value in mapping(text).items.values():
        for node in (key, value):
            assert isinstance(node, ScalarNode)
            cut = line[node.span.column - 1 : node.span.end_column - 1]
            assert cut.strip() == cut
            assert plain_yaml.load(cut) == node.text


def test_plain_scalars_keep_their_spelling_and_quoted_ones_their_value() -> None:
    """`0o14` stays four letters; an escape in double quotes is undone."""
    node = mapping("a: 0o14\nb: \"\\u00e9\\x41\"\nc: '~'\nd: ~\n")
    found = {name: value for name, (_, value) in node.items.items() if isinstance(value, ScalarNode)}
    assert (found["a"].text, found["a"].plain) == ("0o14", True)
    assert (found["b"].text, found["b"].plain) == ("éA", False)
    assert not found["c"].null
    assert found["d"].null


def test_an_alias_is_its_value_with_the_place_of_the_anchor() -> None:
    """An error in a shared value is one error, where it is written."""
    node = mapping("a: &x [b]\nc: *x\n")
    first, second = node.items["a"][1], node.items["c"][1]
    assert isinstance(first, SequenceNode)
    assert first == second


def test_stated_keys_win_over_merged_ones() -> None:
    """`<<` adds only what the mapping doesn't state, wherever it stands."""
    node = mapping("a: &x {k: 1, l: 2}\nb: {<<: *x, k: 3}\n").items["b"][1]
    assert isinstance(node, MappingNode)
    assert [(name, value.text) for name, (_, value) in node.items.items() if isinstance(value, ScalarNode)] == [
        ("k", "3"),
        ("l", "2"),
    ]


def test_long_strings_behind_aliases_are_bounded() -> None:
    """A few aliases of a large string can't stand for gigabytes."""
    text = f"a: &a {'x' * 600_000}\nb: [{', '.join(['*a'] * 9)}]\n"
    assert [each.code for each in parsed(text)[1]] == ["TL112"]


def rejected(path: Path) -> Diagnostic:
    """Return the one diagnostic of a file that can't be read."""
    with pytest.raises(JobFileRejected) as caught:
        read_job(path)
    (found,) = caught.value.diagnostics
    return found


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """The message has the path that was asked for."""
    found = rejected(tmp_path / "jobb.yaml")
    assert (found.code, found.span) == ("TL101", None)
    assert found.message == f"the job file {tmp_path}/jobb.yaml does not exist"


def test_a_folder_is_no_job_file(tmp_path: Path) -> None:
    """The fix names a file in it."""
    found = rejected(tmp_path)
    assert found.message == f"{tmp_path} is a folder, not a job file"
    assert found.fix.endswith(f"{tmp_path}/job.yaml")


def test_a_file_without_permission_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fix is the chmod to type. The open itself is refused, since tests may run as root."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "job.yaml"
    monkeypatch.setattr("trainlaunch.yamltree.text_file.open_given", refuse)
    assert rejected(path).fix == f"run `chmod a+r {path}`"


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    """One byte over 1 MiB is too large, and the endless /dev/zero is not begun."""
    path = tmp_path / "job.yaml"
    path.write_bytes(b"#" * (1024 * 1024 + 1))
    assert "larger than 1048576 bytes" in rejected(path).message
    assert "which may have no end" in rejected(Path("/dev/zero")).message


def test_a_path_that_no_file_can_have_is_refused() -> None:
    """A NUL in a path is no crash."""
    assert rejected(Path("job\0.yaml")).code == "TL101"
    assert rejected(Path("x" * 300)).code == "TL101"


def test_a_pipe_is_a_job_file(tmp_path: Path) -> None:
    """`trainlaunch plan <(generate)` reads what the pipe gives."""
    reading, writing = os.pipe()
    os.write(writing, b"name: job\nimage: trainer:1\ncommand: [python]\n")
    os.close(writing)
    try:
        assert read_job(Path(f"/dev/fd/{reading}")).name == "job"
    finally:
        os.close(reading)
