"""The field reports that are Compose files, and ten thousand texts that chance made of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from trainlaunch.formats.compose import read_compose
from trainlaunch.yamltree.tolerant import documents

from tests.formats.readings import assert_spans_cut, mutated, reports, summary

# As people write them; `test_compose_config` shows that Compose itself reads each of them as the reader does.
FILES = [each.read_text() for each in sorted((Path(__file__).parent / "compose_files").iterdir())]
EXPECTED = Path(__file__).parent / "golden" / "compose.json"


def inputs() -> dict[str, str]:
    """Return the text of each report that is a Compose file, by the report's name."""
    return {each["id"]: each["input"] for each in reports() if each["kind"] == "compose"}


def test_each_report_is_read_as_expected(golden: Callable[[Path, str], None]) -> None:
    """/dev/shm, memory, CPUs, GPUs, image and argv of every service of every report."""
    found = {name: [summary(each) for each in read_compose(text, name)] for name, text in inputs().items()}
    assert len(found) == 8
    assert all(found.values()), "a report without a service"
    golden(EXPECTED, json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def test_each_span_cuts_its_text() -> None:
    """What a value was read from is where its span says."""
    for text in (*inputs().values(), *FILES):
        for spelled in (text, "\ufeff" + text, text.replace("\n", "\r\n")):
            read = read_compose(spelled, "compose.yaml")
            assert read
            for each in read:
                assert_spans_cut(spelled, each)


@pytest.mark.parametrize("count", [2_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_changed_texts_are_read(count: int) -> None:
    """Nothing is raised, spans still cut, and it takes seconds."""
    texts = [*inputs().values(), *FILES]
    services = broken = 0
    start = time.process_time()
    for text in mutated(texts, count, seed=8):
        for each in (read := read_compose(text, "compose.yaml")):
            assert_spans_cut(text, each)
        services += len(read)
        broken += not read and documents(text, "compose.yaml").broken is not None
    assert time.process_time() - start < 20
    assert services > count // 2
    assert broken > count // 20
