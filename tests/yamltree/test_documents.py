"""Each node of foreign YAML has the place of its own spelling, and no text raises."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
import yaml
from trainlaunch.formats.workload import cut
from trainlaunch.yamltree.scalars import plain_value, value_of
from trainlaunch.yamltree.tolerant import MAX_DEPTH, Documents, Mapping, Node, Scalar, Sequence, documents

TEXT = """\
a: &x  # a comment
  b: 1   # é
  "c\\n": 'é''x'\x20\x20
  d:
  e: !!str   5
  f: &y

  🙂: long words
    that go on\x20\x20\x20
    and on  # another
l: |
   x
   y\x20\x20

 # no part of it
f: >-
   a
   b
g: *x
<<: [*x, {h: 2}]
h: [1, &q , !!str '', *x , {a: b}]\x20\x20\x20
? [a]
: b
z: !reset
w: !foo {a: 1}
---
- 1
- - 2
  - |2
     a
...
---
"""
SPELLINGS = [
    *("1", '"c\\n"', "'é''x'", "5", "long words\n    that go on   \n    and on", "|\n   x\n   y  ", ">-\n   a\n   b"),
    *("[a]", "{a: 1}", "[1, &q , !!str '', *x , {a: b}]", "- 2\n  - |2\n     a", "|2\n     a", "🙂"),
]


def nodes(node: Node) -> Iterator[Node]:
    """Yield a node and all below it, keys included."""
    yield node
    below = [each for pair in node.pairs for each in pair] if isinstance(node, Mapping) else []
    for each in node.items if isinstance(node, Sequence) else below:
        yield from nodes(each)


def read(text: str) -> Documents:
    """Return the documents of a text after a check of each node's place."""
    found = documents(text, "f.yaml")
    for root in found.nodes:
        for node in nodes(root):
            assert cut(text, node.span) == node.raw
    return found


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("parser", ["libyaml", "PyYAML"])
def test_each_node_has_its_own_spelling(mark: str, line_end: str, parser: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without anchor, tag, blanks and comments around it, whatever ends the lines and whoever parses."""
    if parser == "PyYAML":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    found = read(mark + TEXT.replace("\n", line_end))
    assert found.broken is None
    raw = {node.raw for root in found.nodes for node in nodes(root)}
    assert {each.replace("\n", line_end) for each in SPELLINGS} <= raw


def test_values_are_those_of_the_parser() -> None:
    """Documents, merges, aliases and scalars as PyYAML makes them."""
    text = TEXT.replace("? [a]\n: b\n", "").replace("!reset", "").replace("!foo", "")
    assert [plain(each) for each in read(text).nodes] == list(yaml.safe_load_all(text))


def plain(node: Node) -> object:
    """Return the value of a node."""
    if isinstance(node, Mapping):
        return {key: plain(value) for key, value in node.items.items()}
    return [plain(each) for each in node.items] if isinstance(node, Sequence) else value_of(node)


def test_a_key_that_stands_twice_is_kept_and_told() -> None:
    """The last one counts, and both stand in the pairs."""
    root = read("a: 1\nb: 2\na: 3\n").nodes[0]
    assert isinstance(root, Mapping)
    assert [each.span.line for each in root.repeated] == [3]
    assert plain(root) == {"a": 3, "b": 2}
    assert len(root.pairs) == 3


def test_what_no_value_shows_is_told() -> None:
    """Readers of YAML take it differently, or refuse it."""
    odd = read("a: 1\n? [b]\n: !x c\na: !!str 2\n<<: {}\n<<: {}\n").odd
    assert [(each.message, each.span.line) for each in odd] == [
        ("the tag !x", 3),
        ("the key a twice", 4),
        ("the key << twice", 6),
        ("a key that is not a word", 2),
    ]


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("a: 1\nb: [\n", "did not find expected node content", 3, 1),
        ("a: 1\n---\na: b: c\n", "mapping values are not allowed in this context", 3, 5),
        ('a: "é\x01"', "a character that YAML does not allow", 1, 6),
        ("é: \ud800", "a character that YAML does not allow", 1, 4),
        ("a: &a [*a]", "the alias *a names no finished value above it", 1, 8),
        ("a: *b", "the alias *b names no finished value above it", 1, 4),
        ("[" * 100, f"values are nested more than {MAX_DEPTH} deep", 1, MAX_DEPTH + 2),
    ],
)
def test_a_broken_text_gives_its_place(text: str, message: str, line: int, column: int) -> None:
    """The documents before it are read."""
    found = read(text)
    assert found.broken is not None
    assert found.broken.message == message
    assert found.broken.span[1:3] == (line, column)
    assert len(found.nodes) == text.count("---")


@pytest.mark.parametrize("levels", [7, 70])
def test_aliases_cannot_grow_without_end(levels: int) -> None:
    """Neither in number nor in depth."""
    width = 10 if levels == 7 else 1
    lines = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width) if n else '1'}]" for n in range(levels)]
    assert read("\n".join(lines)).broken is not None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("1.0", 1.0), ("1e3", 1000.0), ("0o17", 15), ("017", 15), ("0x1F", 31), ("1_000", 1000), ("08", 8.0)),
        *((".inf", float("inf")), ("true", True), ("yes", "yes"), ("~", None), ("-5", -5), ("0b101", 5), ("8g", "8g")),
        *(("1.2.3", "1.2.3"), ("2001-01-01", "2001-01-01"), (".5", 0.5), ("+", "+"), ("1e999", "1e999"), ("-", "-")),
        *(("1:30", "1:30"), ("99999999999999999999", 1e20), ("." * 9, "." * 9)),
    ],
)
def test_a_plain_scalar_means_what_go_yaml_makes_of_it(text: str, value: object) -> None:
    """Compose's environment shows it: facts of its own `config`."""
    assert plain_value(text) == value
    assert type(plain_value(text)) is type(value)


def test_kubectl_knows_more_truth_values() -> None:
    """Those of YAML 1.1."""
    assert [plain_value(each, yaml11=True) for each in ("yes", "off", "y")] == [True, False, True]


def test_no_text_raises() -> None:
    """3,000 mutations of a text, each with every place right."""
    draw = random.Random(8)  # noqa: S311  a test's own dice
    for _ in range(3000):
        text = TEXT
        for _ in range(draw.randrange(1, 6)):
            at, length = draw.randrange(len(text) + 1), draw.choice((0, 1, 1, 5, 40))
            text = (
                text[:at]
                + draw.choice(("", *"\t\n\r :-#&*!|>'\"[]{}%@`\0\x85\ufeff\ud800é", "<<: "))
                + text[at + length :]
            )
        read(text)


def test_scalars_say_how_they_were_written() -> None:
    """A quoted number is a string."""
    root = read("[1, '1', \"1\", !!str 1, !!int '1', !!float 1]").nodes[0]
    assert isinstance(root, Sequence)
    assert [value_of(each) for each in root.items if isinstance(each, Scalar)] == [1, "1", "1", "1", 1, 1.0]
