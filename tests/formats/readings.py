"""What the tests of readers share: the field reports, spans that must cut, and texts that chance has changed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trainlaunch.formats.workload import GpuRequest, Known, Unknown, Value, Workload, cut, stated

CASES = Path(__file__).resolve().parents[1] / "cases"
# Pieces that mean something to YAML, to a shell, to Kubernetes or to a template.
_PIECES = (
    *(
        "{{ .Values.x }}",
        "{{",
        "}}",
        "{",
        "}",
        "[",
        "]",
        ": ",
        "- ",
        "\n",
        "  ",
        "\t",
        "&a ",
        "*a",
        "!!str ",
        "? ",
        "|\n",
    ),
    *(
        "'",
        '"',
        "\\",
        "#",
        "$",
        "$$",
        "$(A)",
        "${A}",
        "%",
        "@",
        "`",
        "~",
        "null",
        "yes",
        "1e999999",
        "0x1F",
        "1_0",
        "-1",
    ),
    *("\r\n", "\u2028", "\x85", "\ufeff", "\x00", "\ud800", "é", "🙂", "<<: ", "---\n", "...\n", "9" * 400, "512m"),
)


def reports() -> Iterator[dict[str, Any]]:
    """Yield each field report."""
    for name in ("cases.jsonl", "reports.jsonl"):
        for line in (CASES / name).read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def values(thing: object) -> Iterator[Known[Any] | Unknown]:
    """Yield every value with a place that is somewhere in a Workload."""
    if isinstance(thing, (Known, Unknown)):
        yield thing
    elif isinstance(thing, Mapping):
        for each in thing.values():
            yield from values(each)
    elif isinstance(thing, tuple):
        for each in thing:
            yield from values(each)


def assert_spans_cut(text: str, workload: Workload) -> None:
    """Assert that each value's span cuts its own text out of `text`."""
    for each in values(workload):
        assert cut(text, each.span) == each.text


def summary(workload: Workload) -> dict[str, object]:
    """Return what a linter looks at first, with `?` before the text of what is unknown."""
    argv = (*(stated(workload.entrypoint) or ()), *(stated(workload.command) or ()))
    unknown = [each.text for each in (workload.entrypoint, workload.command) if isinstance(each, Unknown)]
    shm = workload.shm
    return {
        "place": workload.place,
        "image": _shown(workload.image),
        "argv": [*argv, *(f"?{each}" for each in unknown)],
        "shm": [shm.kind, *(_shown(each) for each in (shm.size, shm.declared) if each is not None)],
        "memory": _shown(workload.memory),
        "cpus": _shown(workload.cpus),
        "gpus": _gpus(workload.gpus),
    }


def _shown(value: Value[Any]) -> object:
    return f"?{value.text}" if isinstance(value, Unknown) else stated(value)


def _gpus(value: Value[GpuRequest]) -> object:
    if not isinstance(value, Known):
        return _shown(value)
    gpus = value.value
    count: object = "all" if gpus.all else list(gpus.ids) or gpus.number
    return {gpus.resource: count} if gpus.resource else count


def mutated(texts: list[str], count: int, seed: int) -> Iterator[str]:
    """Yield texts that chance has cut, doubled, swapped and sprinkled; the same ones for the same seed."""
    chance = random.Random(seed)  # noqa: S311  nothing is kept secret by it
    for _ in range(count):
        text = chance.choice(texts)
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            text = _changed(text, chance, texts)
        yield text


def _changed(text: str, chance: random.Random, texts: list[str]) -> str:
    start = chance.randint(0, len(text))
    end = min(len(text), start + chance.choice((0, 0, 1, 1, 2, 8, 40)))
    kind = chance.randint(0, 4)
    if kind == 0:
        return text[:start] + text[end:]
    if kind == 1:
        return text[:start] + chance.choice(_PIECES) + text[end:]
    lines = text.split("\n")
    at = chance.randrange(len(lines))
    if kind == 2:
        return "\n".join([*lines[:at], chance.choice(chance.choice(texts).split("\n")), *lines[at:]])
    if kind == 3:
        return "\n".join([*lines[:at], *lines[at + 1 :]])
    key, colon, value = lines[at].partition(":")
    lines[at] = f"{key}{colon} {chance.choice(_PIECES)}{value if chance.randint(0, 1) else ''}"
    return "\n".join(lines)
