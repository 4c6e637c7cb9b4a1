"""What the writers of trainlaunch.templating.quoting make, read by the readers that it is for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import nodes
from trainlaunch.formats.docker.shell_lexer import statements
from trainlaunch.templating.environment import TEMPLATES, environment
from trainlaunch.templating.quoting import (
    QUOTING_FILTERS,
    compose_variable,
    number,
    sh_name,
    sh_variable,
    sh_word,
    sh_words,
)
from trainlaunch.yamltree.emitter import Quoted, comment, yaml_string, yaml_text

from tests.render.nasty import nasty_strings

STRINGS = nasty_strings()
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=60)


def test_there_are_at_least_2000_different_nasty_strings() -> None:
    """The proofs below are about at least 2,000 strings, each once."""
    assert len(set(STRINGS)) == len(STRINGS) >= 2_000


@pytest.mark.parametrize("loader", [yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)])
def test_yaml_strings_are_read_back_byte_for_byte(loader: type[yaml.SafeLoader]) -> None:
    """Both of PyYAML's readers, libyaml and pure Python, give each string back."""
    text = "".join(f"- {yaml_string(each)}\n" for each in STRINGS)
    assert yaml.load(text, loader) == STRINGS  # noqa: S506  the loader is a safe one


@pytest.mark.parametrize("loader", [yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)])
def test_yaml_texts_are_read_back_in_lists_and_mappings(loader: type[yaml.SafeLoader]) -> None:
    """A literal block, or what replaces it, ends where its text ends, wherever it stands."""
    text = "a:\n" + "".join(f"  - {yaml_text(each, 4)}\n" for each in STRINGS)
    text += "b:\n" + "".join(f"  k{index}: {yaml_text(each, 4)}\n" for index, each in enumerate(STRINGS))
    read = yaml.load(text, loader)  # noqa: S506  the loader is a safe one
    assert read["a"] == STRINGS
    assert list(read["b"].values()) == STRINGS


@given(TEXT)
def test_any_text_survives_yaml(value: str) -> None:
    """Any Unicode text without NUL and lone surrogates is read back, as string and as text."""
    assert yaml.safe_load(yaml_string(value)) == value
    assert yaml.safe_load(f"a:\n  - {yaml_text(value, 4)}\nb: 1") == {"a": [value], "b": 1}


@given(st.lists(TEXT, max_size=5))
def test_any_words_survive_our_own_reader_of_shell(values: list[str]) -> None:
    """verify's reader of shell words sees the words that were written."""
    assert list(statements(f"cmd {sh_words(tuple(values))}\n")) == [["cmd", *values]]


@pytest.mark.parametrize("shell", ["sh", "bash", "busybox sh", "dash"])
def test_shell_words_arrive_in_real_shells(shell: str, tmp_path: Path) -> None:
    """A real shell passes each string on byte for byte."""
    argv = shell.split()
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not on PATH")
    script = tmp_path / "words.sh"
    lines = "".join(f"printf '%s\\0' {sh_word(each)}\n" for each in STRINGS)
    script.write_bytes(lines.encode())
    done = subprocess.run([*argv, str(script)], capture_output=True, timeout=60, check=True)
    assert done.stdout.decode().split("\0")[:-1] == STRINGS


def test_a_script_is_a_block_that_a_reviewer_can_read() -> None:
    """A text of several printable lines is written line by line."""
    assert yaml_text("if a; then\n\tb\nfi\n", 4) == "|\n    if a; then\n    \tb\n    fi"
    assert yaml_text("  a\nb", 2) == "|2-\n    a\n  b"


@pytest.mark.parametrize(
    "value", ["a\r\nb", "a\u0085\nb", "a\n\u2028b", "a\x1b\nb", "a\n\u202eb", "one line", "", "\na\nb"]
)
def test_what_a_block_cannot_hold_is_double_quoted(value: str) -> None:
    """Line ends that readers fold, invisible characters and single lines give a double-quoted scalar."""
    assert yaml_text(value, 2).startswith('"')


def test_nothing_invisible_stays_in_a_rendering() -> None:
    """Control, direction and zero-width characters are escaped, so that a review sees them."""
    hidden = "\x00\x1b\x7f\x85\xa0\xad\u200b\u202e\u2028\u2066\ufeff\U000e0041"
    assert yaml_string(hidden).isascii()
    assert comment(hidden).isascii()
    assert "\n" not in comment("a\nb")


def test_numbers_are_nothing_else() -> None:
    """A boolean is no number, and a number in a string is none."""
    assert number(-3) == "-3"
    for value in (True, "1", 1.0, None):
        with pytest.raises(TypeError):
            number(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "1A", "A B", "A-B", "A;rm", "A\n", "Ä"])
def test_a_name_that_is_no_variable_is_refused(name: str) -> None:
    """Nothing quotes the name of a shell variable, so only real names are written."""
    for write in (sh_name, sh_variable):
        with pytest.raises(ValueError, match="environment variable"):
            write(name)
    with pytest.raises(ValueError, match="environment variable"):
        compose_variable(name, "missing")


@pytest.mark.parametrize(
    "source", ["{{ x }}", "{{ 'a' }}", "{{ x | sh ~ 'a' }}", "{{ x | upper }}", "{{ y }}", "{{ n }}"]
)
def test_a_template_that_prints_an_unquoted_value_raises(source: str) -> None:
    """Whatever a template prints without a quoting filter stops the rendering, undefined names included."""
    with pytest.raises(TypeError, match="without a quoting filter"):
        environment().from_string(source).render(x="a", n=3)


def test_values_after_a_quoting_filter_are_printed() -> None:
    """The same values pass behind a quoting filter."""
    assert environment().from_string("{{ x | sh }} {{ n | number }}").render(x="a b", n=3) == "'a b' 3"


def template_files() -> list[Path]:
    """Return every template."""
    return sorted(TEMPLATES.rglob("*.j2"))


@pytest.mark.parametrize("path", template_files(), ids=lambda path: path.name)
def test_every_printed_expression_ends_in_a_quoting_filter(path: Path) -> None:
    """In the syntax tree of each template, each expression that is printed is a call of a quoting filter."""
    tree = environment().parse(path.read_text(encoding="utf-8"))
    printed = [
        child
        for output in tree.find_all(nodes.Output)
        for child in output.nodes
        if not isinstance(child, nodes.TemplateData)
    ]
    unquoted = [each for each in printed if not (isinstance(each, nodes.Filter) and each.name in QUOTING_FILTERS)]
    assert unquoted == []


def test_templates_are_found() -> None:
    """The folder of templates has the three targets' texts, so that the test above has something to prove."""
    names = {str(path.relative_to(TEMPLATES)) for path in template_files()}
    assert {"docker-run.sh.j2", "compose.yaml.j2", "kubernetes/pod-spec.yaml.j2"} <= names


def test_every_quoting_filter_gives_quoted_text() -> None:
    """What a filter of the list returns is marked as quoted."""
    arguments: dict[str, tuple[Any, ...]] = {"number": (1,), "yaml_text": ("a", 2), "sh_words": (("a",),)}
    arguments |= {"compose_variable": ("A", "missing"), "yaml_folded": ("a", 2)}
    made = {name: type(write(*arguments.get(name, ("A",)))) for name, write in QUOTING_FILTERS.items()}
    assert set(made.values()) == {Quoted}
