"""Text that others wrote is never obeyed: not by a terminal, a reader's eye or CI, whatever it came from."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from trainlaunch.cli.output.report import annotation, document, framed
from trainlaunch.cli.output.run_output import Screen, bare_evidence, framed_diagnosis
from trainlaunch.cli.output.streams import Streams, TextStyle, table
from trainlaunch.diagnose.base.case import Diagnosis, EvidenceLine
from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.diagnostics import Diagnostic, Span
from trainlaunch.plan.plan_label import Planned
from trainlaunch.run.base.backend import ContainerInfo
from trainlaunch.run.base.run_query import held_by_same_job, listing, not_yours
from trainlaunch.run.machine_status import _lines as status_lines
from trainlaunch.run.machine_status import _Seen as Looked
from trainlaunch.sanitize import one_line, sanitize, shown

from tests.conftest import Runs
from tests.jobs import write_job

NASTY = (
    "a\x1b[2J\x1b]0;x\x07\r\x9b31m\x7f\u202eb\u2066c\u200bd\n::error::owned\n  ::set-env name=A::b\n"
    "##[error]x ##vso[task]"
)
OBEYED = ("\x1b", "\x07", "\r", "\x9b", "\x7f", "\u202e", "\u2066", "\u200b", "\n::", "\n  ::", "##[", "##vso[")


def streams() -> Streams:
    """Return streams into memory."""
    return Streams(io.StringIO(), io.StringIO())


def started(**over: Any) -> ContainerInfo:
    """Return a container all of whose words are hostile."""
    words = dict.fromkeys(("name", "error", "health_output", "owner"), NASTY)
    known: dict[str, Any] = {
        **{
            "id": "1",
            "job": NASTY,
            "run": NASTY,
            "attempt": 1,
            "max_attempts": 1,
            "status": "exited",
            "exit_code": None,
        },
        **{"oom_killed": False, "health": "", "created": 0.0, "started": 0.0, "finished": 0.0, "ipc_mode": NASTY},
        **{"shm_size": 1, "memory": 0, "pid": 0, "planned": Planned()},
    }
    return ContainerInfo(**{**known, **words, **over})


def framed_text(diagnostic: Diagnostic) -> str:
    """Return a diagnostic as it is printed."""
    return framed(diagnostic, TextStyle())


def said(text: str) -> str:
    """Return what a stream is given."""
    into = streams()
    into.say(text)
    Screen(into).say(text)
    Screen(into).line(text)
    return str(into.err.getvalue())  # type: ignore[attr-defined]


def status_text() -> str:
    """Return what `status` prints of a container."""
    into = streams()
    for each in (started(), started(status="running", health="unhealthy")):
        for line in status_lines(Looked(each, None, None)):
            into.show(line + "\n")
    return str(into.out.getvalue())  # type: ignore[attr-defined]


CANDIDATE = SimpleNamespace(id=NASTY, job=NASTY, state=NASTY, owner=NASTY)
DIAGNOSIS = Diagnosis("TL601", NASTY, NASTY, (EvidenceLine("log", 1, NASTY),), NASTY)
SOURCES: dict[str, Callable[[], str]] = {
    "a sentence": lambda: said(NASTY),
    "an error's words": lambda: framed_text(Diagnostic("TL508", NASTY, NASTY, why=NASTY)),
    "a place": lambda: framed_text(Diagnostic("TL101", "m", "f", span=Span(NASTY, 1, 1, 1, 2))),
    "a diagnosis": lambda: framed_diagnosis(DIAGNOSIS, TextStyle()),
    "a log": lambda: said(bare_evidence(Evidence(1, NASTY, reason=NASTY, words=NASTY))),
    "a label of ps": lambda: table([("JOB", "OWNER"), (NASTY, NASTY)]),
    "a container of status": status_text,
    "a list of runs": lambda: framed_text(Diagnostic("TL119", "m", "f", why=listing([CANDIDATE]))),
    "an owner": lambda: framed_text(not_yours(NASTY, [CANDIDATE])),
    "who holds a name": lambda: framed_text(held_by_same_job(started(), NASTY)),
    "a quoted line": lambda: said(shown(NASTY)),
    "JSON": lambda: document({"x": NASTY, NASTY: [NASTY]}),
}


@pytest.mark.parametrize("source", SOURCES)
def test_nothing_of_any_source_is_obeyed(source: str) -> None:
    """Controls, bidi marks and commands of CI at line starts are escapes; the words around them stay."""
    text = "\n" + SOURCES[source]()
    assert "owned" in text
    assert [each for each in OBEYED if each in text] == []


def test_json_keeps_every_character(tmp_path: Path) -> None:
    """The escapes are JSON's own: a reader gets the text as it was."""
    assert json.loads(document({"x": NASTY}))["x"] == NASTY


def test_a_githubs_annotation_is_one_command() -> None:
    """The message can't end the line and begin another."""
    text = annotation(Diagnostic("TL101", NASTY, NASTY))
    assert text.startswith("::error ")
    assert "\n" not in text
    assert "\x1b" not in text


def test_the_lines_of_a_file_keep_their_marks(trainlaunch: Runs, tmp_path: Path) -> None:
    """A hostile line of a job file is shown with one character for each of its own, so that ^ stands right."""
    job = write_job(tmp_path)
    job.write_text(job.read_text() + '"\u202eevil": 1 # \u200b\n')
    done = trainlaunch("plan", str(job))
    assert done.returncode == 1
    assert [each for each in OBEYED if each in done.stderr] == []
    line, marks = (
        each.partition("|")[2] for each in done.stderr.splitlines() if "|" in each and ("evil" in each or "^" in each)
    )
    assert len(line) >= marks.index("^")


def test_the_values_of_a_job_file_are_shown_by_plan(trainlaunch: Runs, tmp_path: Path) -> None:
    """YAML's own escapes give a value any character; plan's text spells them, its JSON keeps them."""
    job = write_job(tmp_path, env={"A": "x\x1b[2Jy\u202e"}, labels={"team": "::error::\x07"})
    done = trainlaunch("plan", str(job))
    assert done.returncode == 0, done.stderr
    assert [each for each in OBEYED if each in done.stdout + done.stderr] == []


def test_what_is_plain_stays_as_it_is() -> None:
    """Accents, signs, tabs, ends of lines, colons that begin no command."""
    text = "é ≥ … \t a::b\n: :x\n#[x] # #[\n日本"
    assert sanitize(text) == text
    assert one_line("a\nb\tc") == "a\\nb\\tc"
    assert sanitize(sanitize("\x1b")) == "\\x1b"
