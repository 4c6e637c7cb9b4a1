"""An edited text means what the change says, and says all else as it did."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from launcher.yamltree.changes import Change, Delete, EditRefused, Insert, Set
from launcher.yamltree.editor import Editor
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


@settings(max_examples=250, deadline=None)
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
