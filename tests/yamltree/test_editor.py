"""An edited text means what the change says, and says all else as it did."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from trainlaunch.yamltree.changes import Change, Delete, EditRefused, Insert, Set
from trainlaunch.yamltree.editor import Editor

from tests.sampling import examples
from tests.yamltree.written import Writer

WORDS = st.sampled_from(
    [
        "ab",
        "long word",
        "yes",
        "1e3",
        "",
        "#",
        "- x",
        "a: b",
        "é",
        "q'",
        'd"',
        "\t",
        "l\nm",
        "l\n\n  m\n",
        "l\nm\n\n",
        " l\nm",
    ]
)
LEAVES = WORDS | st.none() | st.booleans() | st.integers(-9, 99) | st.sampled_from([0.5, -2.25])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4), max_leaves=16
)
TREES = st.dictionaries(WORDS, VALUES, min_size=1, max_size=4) | st.lists(VALUES, min_size=1, max_size=4)
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def loaded(text: str) -> list[Any]:
    """Return the documents of a text as PyYAML has them."""
    return list(yaml.load_all(text, LOADER))


def changes(value: Any, new: Any, path: tuple[Any, ...] = ()) -> Iterator[Change]:
    """Yield each change that a tree allows, with `new` as the value of all."""
    yield Set(path, new)
    if path:
        yield Delete(path)
    if isinstance(value, dict):
        yield Set((*path, "new key"), new)
        for key, item in value.items():
            yield from changes(item, new, (*path, key))
    elif isinstance(value, list):
        yield from (Insert((*path, at), new) for at in range(len(value) + 1))
        for at, item in enumerate(value):
            yield from changes(item, new, (*path, at))


def expected(value: Any, change: Change) -> Any:
    """Return plain values after a change."""
    if not change.path:
        assert isinstance(change, Set)
        return change.value
    whole = below = copy.deepcopy(value)
    for step in change.path[:-1]:
        below = below[step]
    last: Any = change.path[-1]
    if isinstance(change, Delete):
        del below[last]
    elif isinstance(change, Insert):
        below.insert(last, change.value)
    else:
        below[last] = change.value
    return whole


@settings(max_examples=examples(250), deadline=None)
@given(TREES, TREES, VALUES, st.integers(0, 2**32))
def test_each_change_is_made_and_no_other(one: Any, other: Any, new: Any, seed: int) -> None:
    """Of random trees, written in random ways, by each of their changes: some thousands of cases."""
    text = Writer(seed).text(one, other)
    assume(repr(loaded(text)) == repr([one, other]))  # not where an empty line below a block became its last
    chosen = list(changes(one, new))
    for change in random.Random(seed).sample(chosen, min(len(chosen), 25)):  # noqa: S311
        made = Editor(text).after(change).text
        assert repr(loaded(made)) == repr([expected(one, change), other])
        assert made.count("\r\n") in (0, made.count("\n"))
        assert made.endswith(text.split("---")[-1])
        keeps_comments(text, made, one, change)


@settings(max_examples=examples(100), deadline=None)
@given(st.dictionaries(WORDS, VALUES, min_size=1, max_size=3), VALUES, st.integers(0, 2**32))
def test_what_aliases_repeat_changes_in_one_place_alone(base: dict[str, Any], new: Any, seed: int) -> None:
    """A change is made, or refused and made once all aliases are written out."""
    tree = {"base": base, "alias": copy.deepcopy(base), "merged": {**copy.deepcopy(base), "own": 1}, "rest": [new]}
    text = Writer(seed).text(tree)
    assume(repr(loaded(text)) == repr([tree]))
    chosen = list(changes(tree, new))
    for change in random.Random(seed).sample(chosen, min(len(chosen), 10)):  # noqa: S311
        try:
            made = Editor(text).after(change)
        except EditRefused:
            made = Editor(text).expanded().after(change)
        assert sorted_keys(loaded(made.text)) == sorted_keys([expected(tree, change)])


def sorted_keys(value: Any) -> str:
    """Return a value as a text that tells types apart, and not one order of keys from another."""
    return json.dumps(value, sort_keys=True)


def keeps_comments(text: str, made: str, value: Any, change: Change) -> None:
    """Check that comments go only with what they stand in or beside: next to each other, and with a value of parts."""
    before, after = (re.findall(r"# (?:header )?(c\d+\.)", each) for each in (text, made))
    kept = [each for each in before if each in after]
    assert [each for each in after if each in before] == kept
    lost = [at for at, each in enumerate(before) if each not in after]
    if isinstance(change, Insert) or (
        isinstance(change, Set) and not isinstance(at_path(value, change.path), (dict, list))
    ):
        assert not lost
    assert not lost or lost[-1] - lost[0] + 1 == len(lost)
    assert len(after) == len(kept)


def at_path(value: Any, path: tuple[Any, ...]) -> Any:
    """Return what stands at a path; None for a key that is not there."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else value[step]
    return value


TEXT = """\
# header
a: 1   # one
b: &b
  # about c
  c: 'x'  # the x
  d: [1, two,  # in brackets
    {e: 5}]

f:
- |+
  lines

# about the last
- "last"
g: {}  # nothing yet
h: *b
"""
CASES: list[tuple[str, Change, str, str]] = [
    ("a scalar", Set(("a",), "y"), "a: 1   # one", 'a: "y"   # one'),
    ("a scalar that takes lines", Set(("a",), "y\nz\n"), "a: 1   # one", "a: | # one\n  y\n  z"),
    ("a list in place of a scalar", Set(("a",), ["y", {}]), "a: 1   # one", 'a: # one\n- "y"\n- {}'),
    ("the first key of an empty mapping", Set(("g", "on"), [1, 2]), "g: {}  #", 'g: # nothing yet\n  "on": [1, 2]'),
    ("a key that goes", Delete(("a",)), "a: 1   # one\n", ""),
    ("an item that goes, with its comment", Delete(("f", 1)), '# about the last\n- "last"\n', ""),
    ("an item below a block with its empty lines", Insert(("f", 1), 5), "\n\n# about", "\n\n- 5\n# about"),
    ("the last item", Insert(("f", 2), ["y"]), '- "last"', '- "last"\n- - "y"'),
    ("a list that becomes empty", Set(("f",), []), TEXT[TEXT.index("f:") : TEXT.index("\ng:")], "f: []"),
]


@pytest.mark.parametrize(("change", "before", "after"), [each[1:] for each in CASES], ids=[each[0] for each in CASES])
def test_an_edit_stays_in_its_place(change: Change, before: str, after: str) -> None:
    """All around it is as it was."""
    made = Editor(TEXT).after(change).text
    wanted = TEXT.replace(before, after, 1)
    assert made == (wanted if not before.endswith("{}  #") else wanted.replace(" nothing yet\nh", "\nh"))


@pytest.mark.parametrize(
    ("text", "change", "why"),
    [
        (TEXT, Set(("b", "c"), 1), "an alias"),
        (TEXT, Set(("h", "c"), 1), "reached by an alias"),
        (TEXT, Delete(("b",)), "can't be read"),
        (TEXT, Delete(("z",)), "there is no z"),
        (TEXT, Insert(("f", 3), 1), "nothing can be inserted at f.3"),
        ("a: 1\na: 2\n", Delete(("a",)), "stands twice"),
        ("b: &b {c: 1}\na: {<<: *b}\n", Delete(("a", "c")), "is merged"),
        ("? a\n: 1\n", Set(("a",), 2), "question mark"),
        ("a: [", Set(("a",), 2), "can't be read"),
    ],
)
def test_a_change_that_reaches_further_is_refused(text: str, change: Change, why: str) -> None:
    """By the reason."""
    with pytest.raises(EditRefused, match=why):
        Editor(text).after(change)


def test_aliases_are_written_out_as_their_values_are() -> None:
    """Then each place can be changed alone; comments stay, spellings too."""
    anchored = "a: &a\n  x: 0x10 # sixteen\n  y: |\n    l\n    m\n"
    text = f"{anchored}b:\n  # merged\n  <<: *a # all\n  x: 1\nc: [*a, 2]\nd: *a # d\n"
    made = Editor(text).expanded()
    assert made.text == (
        "a: &a\n  x: 0x10 # sixteen\n  y: |\n    l\n    m\nb:\n  # merged\n  # all\n  y: |\n    l\n    m\n  x: 1\n"
        'c: [{x: 0x10, y: "l\\nm\\n"}, 2]\nd: # d\n  x: 0x10\n  y: |\n    l\n    m\n'
    )
    assert loaded(made.text) == loaded(text)
    assert loaded(made.after(Set(("a", "x"), 5)).text)[0]["d"]["x"] == 16
