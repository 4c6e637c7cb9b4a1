"""Records on standard error: written in a job's process, taken out of its output on the host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from typing import Any

import pytest
from trainlaunch.inside import marked
from trainlaunch.measure.marked_lines import MarkedStream

from tests.conftest import ROOT

WRITER = """
import os, sys
from trainlaunch.inside import marked
for number in range(40):
    os.write(2, b"a part of a line, ")
    marked.emit("batches", {"number": number, "text": "é\\x1f\\n" * (number * 60)})
    os.write(2, b"and its rest\\n")
"""


def taken(*reads: bytes) -> tuple[bytes, list[dict[str, Any]]]:
    """Return what passes of these reads, and the records in them."""
    records: list[dict[str, Any]] = []
    stream = MarkedStream(records.append)
    shown = b"".join([*(stream.feed(each) for each in reads), stream.end()])
    return shown, records


def span(text: bytes, name: bytes = b"a-1-0", place: bytes = b"1/1") -> bytes:
    return b"\x1etrainlaunch " + name + b" " + place + b" " + text + b"\x1f\n"


def test_records_of_several_ranks_arrive_whole_and_in_order() -> None:
    """Four processes write into one pipe: no line of one stands inside a line of another."""
    read, write = os.pipe()
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER], stderr=write, env={"PYTHONPATH": str(ROOT / "launcher"), "RANK": str(rank)}
        )
        for rank in range(4)
    ]
    os.close(write)
    with os.fdopen(read, "rb", buffering=0) as pipe:
        reads = iter(lambda: pipe.read(5000), b"")
        shown, records = taken(*reads)
    assert [each.wait() for each in ranks] == [0] * 4
    assert (shown.count(b"a part of a line, "), shown.count(b"and its rest\n")) == (160, 160)
    assert len(shown) == 160 * len("a part of a line, and its rest\n")
    for rank in range(4):
        own = [each for each in records if each["rank"] == rank]
        assert [each["number"] for each in own] == list(range(40))
        assert {len(each["text"]) for each in own} == {number * 180 for number in range(40)}
        assert {(each["kind"], each["pid"]) for each in own} == {("batches", ranks[rank].pid)}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_records_are_found_wherever_reads_are_cut(size: int) -> None:
    """Inside the mark, the JSON and the line's end."""
    text = b"before " + span(b'{"a": ', place=b"1/2") + b"between\r\n" + span(b"1}", place=b"2/2") + b"after"
    cut = [text[at : at + size] for at in range(0, len(text), size)]
    assert taken(*cut) == (b"before between\r\nafter", [{"a": 1}])


def test_a_terminals_line_ends_count() -> None:
    """A terminal makes two bytes of the line's end."""
    assert taken(span(b"{}").replace(b"\n", b"\r\n") + b"x") == (b"x", [{}])


@pytest.mark.parametrize(
    "text",
    [
        b"\x1e",
        b"\x1etrainlaunch",
        b"\x1etrainlaunch a\nb",
        b"\x1etrainlaunch a 1/1 {}\n",
        b"\x1etrainlaunch a 1/1 {}\x1f x\n",
        span(b"no json"),
        span(b"[1]"),
        span(b"{}", place=b"2/1"),
        span(b"{}", place=b"0/0"),
        span(b"{}", place=b"1/999999"),
        span(b"{}", place=b"x/y"),
        b"\x1etrainlaunch a 1/1 " + b"x" * 9000 + b"\x1f\n",
        b"\x1e\x1e\x1e|\x1e",
    ],
)
def test_what_only_looks_like_a_record_is_the_users(text: bytes) -> None:
    """Nothing of a job's output is lost."""
    for reads in ([text], [text[:5], text[5:]], [text[index : index + 1] for index in range(len(text))]):
        assert taken(*reads) == (text, [])


def test_a_record_stands_after_a_mark_of_somebody_else() -> None:
    """A mark without an end hides no record behind it."""
    assert taken(b"\x1etrainlaunch " + span(b"{}")) == (b"\x1etrainlaunch ", [{}])


def test_text_passes_at_once() -> None:
    """A progress bar has no line's end."""
    stream = MarkedStream(lambda _: None)
    assert stream.feed(b"\r 10 %") == b"\r 10 %"
    assert stream.feed(b"x\x1e") == b"x"
    assert stream.feed(b"y") == b"\x1ey"


def test_chunks_that_never_come_whole_are_bounded_and_passed_on() -> None:
    """A job that prints marks can't fill the memory of whoever reads it, and loses none of its output."""
    filler = b"x" * 3900
    spans = [
        span(filler, name=b"%d" % (number // 40), place=b"%d/4096" % (number % 40 + 1)) for number in range(10_000)
    ]
    records: list[dict[str, Any]] = []
    stream = MarkedStream(records.append)
    tracemalloc.start()
    try:
        shown = [stream.feed(b"".join(spans[at : at + 10])) for at in range(0, len(spans), 10)]
        held = tracemalloc.get_traced_memory()[0] - sum(map(len, shown))
    finally:
        tracemalloc.stop()
    assert held < 24 * 1024 * 1024
    text = b"".join(shown)
    assert text == b"".join(spans)[: len(text)]
    assert len(text) >= 5_900 * len(spans[0])
    assert records == []


@pytest.mark.parametrize(
    "spans",
    [
        [span(b"no", place=b"1/2"), span(b" json", place=b"2/2")],
        [span(b"[1", place=b"1/2"), span(b"]", place=b"2/2")],
        [span(b"{}", place=b"1/2"), span(b"{}", place=b"1/2"), span(b"x", place=b"2/2")],
    ],
    ids=["no-json", "no-record", "twice"],
)
def test_chunks_that_make_no_record_are_the_users(spans: list[bytes]) -> None:
    """All of them, when the last has come."""
    shown, records = taken(*spans)
    assert (sorted(shown.splitlines()), records) == (sorted(b"".join(spans).splitlines()), [])


@pytest.mark.parametrize("text", [b"\x1etrainlaunch ", b"\x1e", b"\x1etrainlaunch a 1/1 {}"], ids=repr)
def test_marks_without_an_end_pass_while_they_come(text: bytes) -> None:
    """A megabyte of them: at most a line is held back at any time."""
    stream = MarkedStream(lambda _: pytest.fail("no record"))
    fed = shown = 0
    piece = text * (65536 // len(text))
    while fed < 1_000_000:
        shown += len(stream.feed(piece))
        fed += len(piece)
        assert fed - shown <= 4096
    assert shown + len(stream.end()) == fed


def test_a_line_fits_what_a_pipe_takes_whole() -> None:
    """4,096 bytes on Linux."""
    read, write = os.pipe()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marked, "_descriptor", write)
        marked.emit("long", {"text": "é" * 3000})
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        lines = pipe.read().splitlines(keepends=True)
    assert max(map(len, lines)) <= 3900
    assert len(lines) > 4
    ((record,),) = (taken(*lines)[1],)
    assert record["text"] == "é" * 3000
    assert json.dumps(record["kind"]) == '"long"'


def test_a_pipe_that_nobody_reads_is_no_error() -> None:
    """The job goes on without its records."""
    read, write = os.pipe()
    os.close(read)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marked, "_descriptor", write)
        marked.emit("lost", {})
    os.close(write)
