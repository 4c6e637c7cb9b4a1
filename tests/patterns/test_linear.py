"""Every regular expression takes steps in proportion to its text, whatever the text is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.diagnose.base import kubelet_words
from trainlaunch.diagnose.base.log_patterns import ways
from trainlaunch.job.fields.types import Type
from trainlaunch.job.validation import cross_fields
from trainlaunch.kinds import workloads
from trainlaunch.lint.files import patterns_of
from trainlaunch.script import options
from trainlaunch.verify import owned_by_plan
from trainlaunch.yamltree import syntax

from tests.patterns.found import PACKAGE, Found, arguments, found, modules
from tests.patterns.inputs import Pumped, pumped
from tests.patterns.steps import Counter, TooMany

TIMES = 8
SAMPLE = 16


def _within() -> Iterator[str]:
    """Yield the parts of what tracebacks are asked for."""
    asked = [("has", 0), ("within", 0), ("first", "within"), ("hits", "within")]
    for source in (each for function, which in asked for each in arguments(function, which)):
        yield from (part.pattern for parts in ways(source) for part in parts)


def _types() -> Iterator[str]:
    """Yield the patterns of values and of keys of the job file and of policies."""
    known: list[object] = [
        value for names in modules("trainlaunch.job.fields", "trainlaunch.policy") for value in names.values()
    ]
    seen: set[int] = set()
    while known:
        each = known.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, Type):
            yield from filter(None, (each.pattern, each.keys[0] if each.keys else ""))
        known += each if isinstance(each, list | tuple) else each.values() if isinstance(each, dict) else []


# Where the patterns of a call stand that its module doesn't tell.
ELSEWHERE: dict[tuple[str, str], Callable[[], Iterator[str]]] = {
    ("trainlaunch/diagnose/base/kubelet_words.py", "each[0]"): lambda: (each[0] for each in kubelet_words._STORIES),
    ("trainlaunch/diagnose/base/log_patterns.py", "flags + part"): _within,  # and of each Text, which is found as such
    ("trainlaunch/script/options.py", "_BY_NAME[setting]"): lambda: iter(options._BY_NAME.values()),
    ("trainlaunch/job/validation/cross_fields.py", "named"): lambda: (
        each[0] for each in cross_fields._NAMED_SOURCE.values()
    ),
    ("trainlaunch/job/validation/texts.py", "pattern"): lambda: arguments("refuse_characters", 1),
    ("trainlaunch/job/values/value_reader.py", "pattern"): _types,
    ("trainlaunch/job/values/scalar_reader.py", "type_.pattern"): _types,
    ("trainlaunch/lint/files.py", "_expression(anchored)"): lambda: (each.pattern for each in ignored(IGNORED)),
    ("trainlaunch/container/api_fields.py", "pattern"): lambda: iter(()),  # compiled in a table, and found there
    ("trainlaunch/diagnose/base/flags.py", "pattern"): lambda: iter(()),  # likewise
    # Words as they are, one of which is there or not.
    ("trainlaunch/diagnose/base/word_search.py", "b'|'.join(map(re.escape, words))"): lambda: iter(()),
    ("trainlaunch/run/base/secret_values.py", "b'|'.join(map(re.escape, longest_first)) or b'(?!)'"): lambda: iter(()),
    ("trainlaunch/run/kubernetes/gone_pods.py", "kind.pod_names"): lambda: (
        each.pod_names for each in workloads().values()
    ),
    ("trainlaunch/verify/owned_by_plan.py", "pattern"): lambda: (
        each[0] for table in owned_by_plan._OWNED.values() for each in table
    ),
    ("trainlaunch/yamltree/syntax.py", "words"): lambda: (each[0] for each in syntax._PLAIN_WORDS),
}
# Lines of a .gitignore that take long where each star is tried again.
IGNORED = (
    "**/**/**/**/x",
    "a*a*a*a*a*b",
    "*a*?*a*",
    "**/a/**/a/**/b",
    "[[[[",
    "a/**",
    "**/*a*/**/*b*/c",
    "[!a]*[!a]*b",
    "*.*.*.py",
)
ROOMS = sorted({each.relative_to(PACKAGE).parts[0] for each in PACKAGE.rglob("*.py")})


def ignored(lines: tuple[str, ...]) -> list[re.Pattern[str]]:
    """Return how lines of a .gitignore are matched."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, ".gitignore").write_text("\n".join(lines))
        return [each.matches for each in patterns_of(Path(folder))]


@cache
def all_patterns() -> dict[tuple[re.Pattern[Any], str], str]:
    """Return each pattern with a use, and the place where it stands first."""
    patterns, untold = found()
    for each in untold:
        path = each.place.rpartition(":")[0]
        for source in ELSEWHERE.get((path, each.expression), lambda: iter(()))():
            use = "fullmatch" if path == "trainlaunch/lint/files.py" else each.use
            patterns.append(Found(each.place, re.compile(source), frozenset({use})))
    known: dict[tuple[re.Pattern[Any], str], str] = {}
    for each in patterns:
        for use in each.uses:
            known.setdefault((each.pattern, use), each.place)
    return known


def test_each_call_is_told_from_where_its_pattern_comes() -> None:
    """A call that takes a pattern as a parameter is in the table above, or it would be counted by nobody."""
    _, untold = found()
    assert {(each.place.rpartition(":")[0], each.expression) for each in untold} == set(ELSEWHERE)


def of_room(room: str) -> Iterator[tuple[re.Pattern[Any], str, str]]:
    """Yield the patterns of a part of the package, with use and place."""
    for (pattern, use), place in all_patterns().items():
        if place.split("/")[1].partition(":")[0] == room:
            yield pattern, use, place


def sampled(texts: list[Pumped]) -> list[Pumped]:
    """Return about SAMPLE of the texts, from all over; all where they are few. Each has its neighbours' like."""
    step = max(1, len(texts) // SAMPLE)
    return texts[:: step + (step % 3 == 0)]  # each text comes with three ends


def slowest(pattern: re.Pattern[Any], use: str, texts: Iterable[Pumped] | None = None) -> str | None:
    """Return a text whose steps grow faster than it does, None where there is none: of a sample, unless given."""
    counter = Counter(pattern)
    for each in sampled(list(pumped(pattern))) if texts is None else texts:
        steps: list[int] = []
        for times in (TIMES, 2 * TIMES, 4 * TIMES):
            text = each.text(times)
            try:
                steps.append(counter.count(use, text.encode("latin-1") if isinstance(pattern.pattern, bytes) else text))
            except TooMany:
                return f"{each}: {steps} steps, then no end"
            if len(steps) == 2 and steps[1] - steps[0] <= 1.1 * steps[0] + 30:
                break
        else:
            if steps[2] - steps[1] > 2.5 * (steps[1] - steps[0]):
                return f"{each}: {steps} steps"
    return None


@pytest.mark.parametrize("room", ROOMS)
def test_no_pattern_takes_more_steps_than_its_text_is_long(room: str) -> None:
    """A repository's file of 20,000 newlines, or a log, would hold up lint or doctor for minutes."""
    slow = [f"{place} {use} {why}" for pattern, use, place in of_room(room) if (why := slowest(pattern, use))]
    assert slow == []


@pytest.mark.long
@pytest.mark.parametrize("room", ROOMS)
def test_no_pattern_takes_more_steps_for_any_text_that_can_be_made(room: str) -> None:
    """All texts, not a sample of them."""
    slow = [
        f"{place} {use} {why}"
        for pattern, use, place in of_room(room)
        if (why := slowest(pattern, use, pumped(pattern)))
    ]
    assert slow == []


@pytest.mark.parametrize("room", ROOMS)
def test_the_steps_are_those_of_re(room: str) -> None:
    """What counts the steps finds what `re` finds, at the same places."""
    for pattern in {each for each, _, _ in of_room(room)}:
        counter = Counter(pattern, bounded=False)
        for each in islice(pumped(pattern), 0, None, 61):
            text = each.text(2).encode("latin-1") if isinstance(pattern.pattern, bytes) else each.text(2)
            assert counter.scan(text) == [it.span() for it in pattern.finditer(text)], (pattern, text)
            assert (counter.match(text, whole=True) is None) == (pattern.fullmatch(text) is None), (pattern, text)


@pytest.mark.parametrize(
    ("source", "use"),
    [
        (r"^\s*FROM", "search"),
        (r"\s*$", "search"),
        (r"\s+\n", "scan"),
        (r"[^x]*y", "search"),
        (r"(?:a|a)*b", "match"),
        (r"(?:a*)*b", "match"),
        (r"[0-9]+\.?[0-9]*", "fullmatch"),
        (r"docker .* run", "search"),
        (r'"(?:\\.|[^"\\])*"', "scan"),
        (r"(\w+)-\1", "search"),
    ],
)
def test_what_takes_too_long_is_found(source: str, use: str) -> None:
    """Without this a mistake in the count would let everything pass."""
    assert slowest(re.compile(source, re.MULTILINE), use) is not None


@pytest.mark.parametrize(
    ("source", "use"),
    [
        (r"\s*$", "match"),
        (r"(?<!\s)\s*$", "search"),
        (r"^[ \t]*FROM", "search"),
        (r"[^x]*y", "match"),
        (r'"(?:\\.|[^"\\])*"?', "scan"),
        (r"(?=(?P<a>[^/]*?b))(?P=a)[^/]*c", "fullmatch"),
        (r"x{0,4096}y", "search"),
        (r"(?:[^a]|a(?!b))*ab", "match"),
    ],
)
def test_what_is_linear_stays_allowed(source: str, use: str) -> None:
    """Near-misses of the former."""
    assert slowest(re.compile(source, re.MULTILINE), use) is None


def test_lines_of_a_gitignore_stay_what_they_mean() -> None:
    """Stars that are taken for good still find what trying each place found."""
    taken = {
        "a*a*b": ("axab", "aab"),
        "**/a/**/b": ("a/b", "x/a/y/a/z/b"),
        "*a*b*/c": ("xaybz/c",),
        "a/**/a/b": ("a/a/a/b",),
    }
    left = {"a*a*b": ("ab", "axb", "aa/b"), "**/a/**/b": ("ab", "a/bc"), "*a*b*/c": ("ba/c",), "a/**/a/b": ("a/b",)}
    for line, paths in taken.items():
        assert all(ignored((line,))[0].fullmatch(each) for each in paths), line
    for line, paths in left.items():
        assert not any(ignored((line,))[0].fullmatch(each) for each in paths), line
