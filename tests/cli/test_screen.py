"""The job's bytes and our own lines share a terminal and stay whole."""

from __future__ import annotations

import argparse
import errno
import io
import json
import os
import subprocess
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import cast

import pytest
from trainlaunch.cli.main import _guarded
from trainlaunch.cli.output.command_output import Hidden
from trainlaunch.cli.output.run_document import with_document
from trainlaunch.cli.output.run_output import Screen, bare_evidence
from trainlaunch.cli.output.streams import Streams
from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import TargetUnavailable
from trainlaunch.exit_codes import EXIT_BEFORE_START
from trainlaunch.run.base.store import Followed
from trainlaunch.sanitize import shown

from tests.jobs import plan_with, write_job


class Full(io.StringIO):
    """A stream on a full disk, one whose reader is gone, a terminal that has hung up."""

    def __init__(self, number: int, *, terminal: bool = False, refuses: bool = True) -> None:
        super().__init__()
        self.error = OSError(number, "No space left on device") if refuses else None
        self.terminal = terminal

    def isatty(self) -> bool:
        """Be a terminal, or none."""
        return self.terminal

    def write(self, text: str) -> int:
        """Refuse."""
        if self.error is not None:
            raise self.error
        return super().write(text)


def test_our_line_stands_below_an_unfinished_one() -> None:
    """A progress bar ends without a line feed; the job's own bytes are not touched otherwise."""
    err = io.StringIO()
    screen = Screen(Streams(io.StringIO(), err))
    screen.err(b"\r 50%")
    screen.say("stopping")
    screen.err(b"bye\n")
    screen.say("ended")
    assert err.getvalue() == "\r 50%\ntrainlaunch: stopping\nbye\ntrainlaunch: ended\n"


def test_an_unfinished_line_elsewhere_adds_nothing() -> None:
    """stdout in a file is not where our lines stand."""
    out, err = io.StringIO(), io.StringIO()
    screen = Screen(Streams(out, err))
    screen.out(b"no line feed")
    screen.say("ended")
    assert (out.getvalue(), err.getvalue()) == ("no line feed", "trainlaunch: ended\n")


@pytest.mark.parametrize(
    ("number", "said"),
    [(errno.ENOSPC, "stdout can't be written: No space left on device"), (errno.EPIPE, "nobody reads stdout any more")],
)
def test_output_that_is_lost_is_said_once(number: int, said: str) -> None:
    """A reader that went away (`up | head`) closes that stream alone, and the job goes on in both cases."""
    err = io.StringIO()
    screen = Screen(Streams(Full(number), err))
    for _ in range(3):
        screen.out(b"x\n")
    screen.err(b"still here\n")
    assert err.getvalue() == f"trainlaunch: {said}; the job goes on, and `trainlaunch logs` has it all\nstill here\n"


def test_stdout_is_told_of_stderr_only_where_it_is_a_terminal() -> None:
    """Else it is the job's result, which a program reads."""
    for terminal, said in ((True, 1), (False, 0)):
        out = Full(0, terminal=terminal, refuses=False)
        screen = Screen(Streams(out, Full(errno.EPIPE)))
        screen.err(b"x\n")
        screen.say("more")
        screen.out(b"data\n")
        assert out.getvalue().count("nobody reads stderr any more") == said
        assert out.getvalue().endswith("data\n")


def test_a_terminal_that_hangs_up_is_left_and_a_file_is_not() -> None:
    """`up >train.log` in a terminal that is closed writes train.log to its end."""
    out = io.StringIO()
    screen = Screen(Streams(out, Full(errno.EIO, terminal=True)))
    screen.out(b"1\n")
    screen.err(b"x\n")
    screen.say("nobody sees this")
    screen.out(b"2\n")
    assert screen.left
    assert out.getvalue() == "1\n2\n"


@pytest.mark.parametrize("writes", ["", "exec >/dev/full", "exec > >(true)"])
def test_lost_output_costs_no_exit_code(writes: str, bin_folder: Path, tmp_path: Path) -> None:
    """Nothing of it is held back to fail once more at the end, however Python buffers: the code is the job's."""
    job = write_job(tmp_path, target="local", command=["sh", "-c", "sleep 0.5; echo hello; exit 4"])
    environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    environment.pop("PYTHONUNBUFFERED", None)
    script = f"{writes}\ntrainlaunch up {job} 2>{tmp_path}/said"
    done = subprocess.run(["bash", "-c", script], env=environment, stdout=subprocess.DEVNULL, check=False, timeout=60)
    assert done.returncode == 4, (tmp_path / "said").read_text()


def test_what_a_job_printed_is_shown_short_and_harmless() -> None:
    """A line of 64 KiB or an escape sequence would spoil the terminal that it is quoted on."""
    assert shown("\x1b[31mred") == "\\x1b[31mred"
    long = shown("a" * 5000 + "end")
    assert len(long) < 310
    assert long.endswith("end")


def test_the_last_words_of_torchrun_are_the_ranks_own() -> None:
    """Its epilogue of ten lines ends in a rule of equals signs."""
    log = "[rank1]: KeyError: 'x'\nx.errors.ChildFailedError: \n=====\n  traceback : To enable traceback see\n====\n"
    assert bare_evidence(Evidence(1, log)).endswith("last line: [rank1]: KeyError: 'x'")
    assert bare_evidence(Evidence(1, "KeyError: 'x'\nbye\n\n---\n")).endswith("last line: bye")


def test_the_preflights_line_is_hidden_behind_what_was_typed_before_it() -> None:
    """In whatever pieces it comes, and once: what the job itself prints later like it is the job's."""
    text = b"^Als\r\ntrainlaunch: warning: a\r\ntrainlaunch: preflight passed: b\r\ntr\ntrainlaunch: preflight passed\n"
    for cut in range(len(text)):
        out: list[bytes] = []
        hidden = Hidden(out.append)
        for piece in (text[:cut], text[cut : cut + 3], text[cut + 3 :]):
            hidden(piece)
        assert b"".join(out) == text.replace(b"trainlaunch: preflight passed: b\r\n", b"")


def test_a_run_whose_target_is_lost_is_one_document(tmp_path: Path) -> None:
    """Its findings stand in it: what reads stdout takes one."""
    lost = TargetUnavailable([Diagnostic("TL501", "the cluster is away", "start it")])
    out, err, plan = io.StringIO(), io.StringIO(), plan_with(tmp_path)
    streams = Streams(out, err)

    def tell(followed: Followed) -> None:
        raise followed.error or AssertionError

    verb = SimpleNamespace(run=lambda *_: with_document(tell, plan, streams)(Followed(125, error=lost)))
    args = argparse.Namespace(verb="up", output="json")
    assert _guarded(cast("ModuleType", verb), args, streams) == EXIT_BEFORE_START
    document = json.loads(out.getvalue())
    assert (document["state"], [each["code"] for each in document["findings"]]) == ("lost", ["TL501"])
    assert "the cluster is away" in err.getvalue()
