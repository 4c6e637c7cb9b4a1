"""JSON Patch and JSON Merge Patch do what their RFCs say, and what another implementation does."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trainlaunch.diagnostics import Span
from trainlaunch.job.patch import Operation
from trainlaunch.render.json_patch import PatchFailed, after, merged_after

from tests.sampling import examples

PLACE = Span(str(Path("job.yaml")), 1, 1, 1, 1)
KEYS = st.sampled_from(["a", "b", "c/d", "m~n", "0", "1", "-", ""])
LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x", "$y"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
TOKENS = KEYS.map(lambda key: key.replace("~", "~0").replace("/", "~1")) | st.sampled_from(["2", "01", "x"])
POINTERS = st.lists(TOKENS, max_size=3).map(lambda tokens: "".join(f"/{each}" for each in tokens))
OPS = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
        "path": POINTERS,
        "from": POINTERS,
        "value": VALUES,
    }
)


def operation(stated: dict[str, Any]) -> Operation:
    """Return one operation as the job file's reader makes it."""
    return Operation(stated["op"], stated["path"], stated.get("from"), stated.get("value"), None, "patches", PLACE)


def patched(document: Any, operations: list[dict[str, Any]]) -> Any:
    """Return the document after all operations."""
    for each in operations:
        document = after(document, operation(each))
    return document


# RFC 6902, appendix A: document, patch, result (None: an error).
APPENDIX: list[tuple[Any, list[dict[str, Any]], Any]] = [
    ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}),
    ({"foo": ["bar", "baz"]}, [{"op": "add", "path": "/foo/1", "value": "qux"}], {"foo": ["bar", "qux", "baz"]}),
    ({"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
    ({"foo": ["bar", "qux", "baz"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["bar", "baz"]}),
    ({"baz": "qux"}, [{"op": "replace", "path": "/baz", "value": "boo"}], {"baz": "boo"}),
    (
        {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
    ),
    ({"foo": ["all", "grass", "cows", "eat"]}, [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
     {"foo": ["all", "cows", "eat", "grass"]}),
    ({"baz": "qux", "foo": ["a", 2, "c"]}, [{"op": "test", "path": "/baz", "value": "qux"},
     {"op": "test", "path": "/foo/1", "value": 2}], {"baz": "qux", "foo": ["a", 2, "c"]}),
    ({"baz": "qux"}, [{"op": "test", "path": "/baz", "value": "bar"}], None),
    ({"foo": "bar"}, [{"op": "add", "path": "/child", "value": {"grandchild": {}}}],
     {"foo": "bar", "child": {"grandchild": {}}}),
    ({"foo": "bar"}, [{"op": "add", "path": "/baz/bat", "value": "qux"}], None),
    ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
    ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": "10"}], None),
    ({"foo": ["bar"]}, [{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}], {"foo": ["bar", ["abc", "def"]]}),
]  # fmt: skip
# What the RFC's text asks for beside its examples.
BESIDES: list[tuple[Any, list[dict[str, Any]], Any]] = [
    ({"a": 1}, [{"op": "test", "path": "/a", "value": True}], None),
    ({"a": 1}, [{"op": "test", "path": "/a", "value": 1.0}], {"a": 1}),
    ({"a": [1]}, [{"op": "add", "path": "/a/2", "value": 3}], None),
    ({"a": [1, 2]}, [{"op": "remove", "path": "/a/01"}], None),
    ({"a": [1, 2]}, [{"op": "remove", "path": "/a/-"}], None),
    ({"a": 1}, [{"op": "replace", "path": "/b", "value": 1}], None),
    ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
    ({"a": [{"b": 1}]}, [{"op": "copy", "from": "/a/0", "path": "/a/-"},
     {"op": "replace", "path": "/a/1/b", "value": 2}], {"a": [{"b": 1}, {"b": 2}]}),
    ({"a": 1, "b": 2}, [{"op": "move", "from": "/a", "path": "/a"}], {"b": 2, "a": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("document", "operations", "result"), APPENDIX + BESIDES, ids=lambda each: str(each)[:60])
def test_operations_do_what_the_rfc_says(document: Any, operations: list[dict[str, Any]], result: Any) -> None:
    """The examples of its appendix, and what they leave out; the given document stays as it was."""
    before = copy.deepcopy(document)
    if result is None:
        with pytest.raises(PatchFailed):
            patched(document, operations)
    else:
        assert patched(document, operations) == result
    assert document == before


@settings(max_examples=examples(400), deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=4), st.lists(OPS, min_size=1, max_size=3))
def test_another_implementation_agrees(document: dict[str, Any], operations: list[dict[str, Any]]) -> None:
    """Wherever both say something: it takes booleans for numbers in tests, and - for an existing item."""
    try:
        ours: Any = patched(document, operations)
    except PatchFailed:
        ours = PatchFailed
    try:
        theirs = jsonpatch.apply_patch(document, operations)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError, KeyError, IndexError):
        theirs = PatchFailed
    if ours is PatchFailed or theirs is PatchFailed:
        return
    assert ours == theirs


# RFC 7386, appendix A: target, patch, result.
MERGES: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("document", "patch", "result"), MERGES, ids=lambda each: str(each)[:40])
def test_merges_do_what_the_rfc_says(document: Any, patch: Any, result: Any) -> None:
    """The table of its appendix."""
    assert merged_after(document, patch) == result
