"""Our lines on a terminal: none is wider, none is broken where it would be pasted, and elsewhere none is touched."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from trainlaunch.cli.arguments.verb_table import VERBS
from trainlaunch.cli.output.report import framed
from trainlaunch.cli.output.streams import TextStyle, wrapped
from trainlaunch.diagnostics import Diagnostic, Span

from tests.jobs import write_job
from tests.runners import ROOT, run_started

LONG = "the size follows from the workers, what each keeps ready, and the bytes of one batch; a cap costs nothing"


def on_a_terminal(columns: int, *words: str) -> str:
    """Return what `trainlaunch WORDS` prints on a terminal of so many columns."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    command = [sys.executable, "-m", "trainlaunch", *words]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "launcher"), "NO_COLOR": "1"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        said = b""
        while piece := _read(ours):
            said += piece
        process.wait(timeout=60)
    os.close(ours)
    return said.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other side is closed
        return b""


@pytest.mark.parametrize("columns", [80, 60])
def test_a_plan_and_its_findings_fit_a_terminal(tmp_path: Path, columns: int) -> None:
    """Numbers, their derivations, findings and the line that each is about; only a place is as long as it is."""
    job = write_job(tmp_path, resources={"cpus": 8, "memory": "8Gi"})
    job.write_text(f"{job.read_text()}\ndata_loader: # {LONG}\n  loaders: {{a: {{}}, b: {{}}}}\n")
    lines = on_a_terminal(columns, "plan", str(job), "--why").splitlines()
    assert [each for each in lines if len(each) > columns and str(tmp_path) not in each] == []
    assert any(each.endswith("…") for each in lines)  # the comment's line, cut
    assert any(each.startswith("        ") for each in lines)  # what goes on below


def test_a_wrapped_command_stays_on_one_line() -> None:
    """What stands in backticks is pasted, so that it is never broken, even where it is too long."""
    command = "`trainlaunch probe jobs/resnet50.yaml --target kubernetes --write`"
    text = wrapped(f"run {command} to measure it, or set data_loader.sample", 60, 8)
    assert command in text.splitlines()[1]
    assert wrapped(f"run {command}", 20, 8).splitlines() == ["run", f"        {command}"]


def test_nothing_is_wrapped_where_there_is_no_terminal() -> None:
    """Logs of CI, files and pipes get the line as it is."""
    assert wrapped(LONG * 3, None, 8) == LONG * 3
    assert framed(Diagnostic("TL209", LONG, LONG, why=LONG), TextStyle()).splitlines()[1] == f"   = why: {LONG}"


def test_a_traceback_keeps_its_lines() -> None:
    """Lines that are short enough stay, with their indentation."""
    text = f"why\n    File x, line 1\n      pass\n{LONG}"
    assert wrapped(text, 60, 2).splitlines()[:3] == ["why", "    File x, line 1", "      pass"]


@pytest.mark.parametrize("column", [1, 60, 140])
def test_the_mark_stands_below_what_it_is_about(tmp_path: Path, column: int) -> None:
    """A line that is wider than the terminal is cut around the place, wherever in it that is."""
    line = "".join(f"{number:<10}" for number in range(0, 150, 10))
    file = tmp_path / "job.yaml"
    file.write_text(line + "\n")
    spot = line[column - 1 : column + 1]
    frame = framed(Diagnostic("TL105", "m", "f", span=Span(str(file), 1, column, 1, column + 2)), TextStyle(columns=60))
    shown, marks = frame.splitlines()[3:5]
    assert max(len(shown), len(marks)) <= 60
    begin = marks.index("^")
    assert marks.count("^") == 2
    assert shown[begin : begin + 2] == spot


def test_colour_is_no_part_of_the_width() -> None:
    """The escapes around a code take no column."""
    plain = framed(Diagnostic("TL209", LONG, "f"), TextStyle(columns=60))
    coloured = framed(Diagnostic("TL209", LONG, "f"), TextStyle(colour=True, columns=60))
    assert coloured != plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_fits_80_columns(verb: str) -> None:
    """Usage, options, examples and exit codes."""
    lines = on_a_terminal(80, *filter(None, [verb]), "--help").splitlines()
    assert [each for each in lines if len(each) > 80] == []


def test_help_is_wrapped_to_a_narrow_terminal() -> None:
    """All but lists of choices, which are one word, and examples, which are pasted."""
    lines = on_a_terminal(60, "probe", "--help").splitlines()
    assert [each for each in lines if len(each) > 60 and "{" not in each and not each.startswith("  trainlaunch")] == []


@pytest.mark.parametrize("code", ["TL702", "TL209"])
def test_an_explanation_fits_a_terminal(code: str) -> None:
    """Its paragraphs are filled again, and no example is touched."""
    told = on_a_terminal(60, "explain", code).splitlines()
    assert [each for each in told if len(each) > 60 and not each.startswith("    ")] == []
    wide = run_started("explain", code).stdout
    assert " ".join(" ".join(told).split()) == " ".join(wide.split())
    assert [each for each in wide.splitlines() if each.startswith("    ") and each not in told] == []
