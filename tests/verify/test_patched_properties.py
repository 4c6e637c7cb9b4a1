"""Whatever a patch asks for, the answer is a text that says what the plan says, or an error at the patch's place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trainlaunch.errors import JobFileRejected
from trainlaunch.render import render
from trainlaunch.render.apply_patch import documents_of
from trainlaunch.verify import verified
from trainlaunch.verify.expected_workload import parse_rendering

from tests.jobs import plan_with
from tests.sampling import examples

FIELDS: dict[str, Any] = {
    "env": {"A": "1"},
    "resources": {"cpus": 4, "memory": "4Gi", "gpus": 1},
    "secrets": {"TOKEN": {"env": "TOKEN", "kubernetes": "a/b"}},
    "kubernetes": {"kind": "job"},
}
POLICY = "max: {gpus: 1, memory: 8Gi}\nallowed_registries: [docker.io/library]\nrequire_digest: false\n"
LEAVES = st.sampled_from([None, True, False, 0, -1, 1.5, "", "x", "/dev/shm", "host", "64m", "a=b", "$x", "Memory"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["name", "image", "containers", "env", "value", "limits", "x"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


def places(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of everything in a document."""
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        yield from places(item, (*path, str(key)))


def places_of(target: str) -> list[tuple[str, ...]]:
    """Return the paths of the text of FIELDS."""
    with TemporaryDirectory() as folder:
        (document,) = documents_of(render(plan_with(Path(folder), target, **FIELDS)))
    return list(places(document))


def pointer(path: tuple[str, ...]) -> str:
    """Return a path as JSON Patch has it."""
    return "".join("/" + each.replace("~", "~0").replace("/", "~1") for each in path)


def answered(target: str, patch: Any, *, policy: bool) -> None:
    """Render and read back; a text that is accepted still says what the plan says of /dev/shm and of its process."""
    with TemporaryDirectory() as folder:
        if policy:
            (Path(folder) / "trainlaunch-policy.yaml").write_text(POLICY)
        try:
            plan = plan_with(Path(folder), target, **FIELDS, patches={target: patch})
            text = verified(plan, render(plan))
        except JobFileRejected as rejected:
            refused = rejected.diagnostics
        else:
            refused = ()
        assert all(each.span and each.message and each.fix and "\n" not in each.message for each in refused)
        if refused:
            return
        bare = plan._replace(job=plan.job._replace(patch=None))
        before, after = (parse_rendering(plan, each, base=None) for each in (render(bare), text))
        for field in ("shm_size", "process", "memory", "health"):
            assert before[field] == after[field]


KUBERNETES, COMPOSE = places_of("kubernetes"), places_of("compose")
AT = st.builds(
    lambda path, more: pointer((*path, *more)),
    st.sampled_from(KUBERNETES),
    st.lists(st.sampled_from(["-", "0", "x", "name"]), max_size=1),
)
OPERATION = st.one_of(
    st.fixed_dictionaries({"op": st.sampled_from(["add", "replace", "test"]), "path": AT, "value": VALUES}),
    st.fixed_dictionaries({"op": st.just("remove"), "path": AT}),
    st.fixed_dictionaries({"op": st.sampled_from(["move", "copy"]), "path": AT, "from": AT}),
)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(OPERATION, min_size=1, max_size=2), st.booleans())
def test_any_json_patch_is_answered(operations: list[dict[str, Any]], policy: bool) -> None:
    """At any place of the manifest, with any value, under a policy or not."""
    answered("kubernetes", operations, policy=policy)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([each for each in COMPOSE if each]), st.lists(st.just("x"), max_size=1), VALUES, st.booleans())
def test_any_merge_patch_is_answered(path: tuple[str, ...], more: list[str], value: Any, policy: bool) -> None:
    """At any key of the file, with any value, under a policy or not."""
    for key in reversed((*path, *more)):
        value = {key: value}
    answered("compose", value, policy=policy)


@pytest.mark.parametrize("value", ["x", 5, None, [], ["x"], [{}], {"name": 5}], ids=str)
@pytest.mark.parametrize(
    "path", ["/spec/template/spec/containers", "/spec/template/spec/containers/0/env", "/metadata"]
)
def test_a_value_of_another_shape_is_answered(path: str, value: Any) -> None:
    """What no reader expects there."""
    answered("kubernetes", [{"op": "replace", "path": path, "value": value}], policy=True)
