"""What the verbs about runs share: a target's backend, and the words about a run's end."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from trainlaunch.cli.output.report import headline, help_line, parts
from trainlaunch.cli.output.streams import Streams, TextStyle, style_of
from trainlaunch.cli.output.terminal import Screen
from trainlaunch.sanitize import SafeText, sanitize, shown
from trainlaunch.units import human_size

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.diagnosis import Diagnosis
    from trainlaunch.diagnose.base.evidence import Evidence
    from trainlaunch.run.base.backend import Chunk
    from trainlaunch.run.base.run_query import Run
    from trainlaunch.run.base.store import Followed, Following, RunStore, Tell

TORCHRUN_ENDS = "ChildFailedError"
_EXCEPTION = re.compile(r"(\[rank\d+\]: *)?[A-Za-z_][\w.]*(Error|Exception|Interrupt)\b")


def hints(command: Callable[[str], str], line: Callable[[str], None]) -> None:
    """Print how to follow a job that was left alone and how to end it; `command` gives a verb's command line."""
    line(f"follow it: {command('logs -f')}")
    line(f"end it:    {command('down')}")


def follow_run(
    store: RunStore, run: Run, how: Following, streams: Streams, show: Callable[[Chunk], None] | None = None
) -> int:
    """Follow a run to its end, say why it ended, and return its exit code; `show` takes its output, else a Screen."""
    from trainlaunch.run.base.backend import Chunk
    from trainlaunch.run.base.console import Console

    screen = Screen(streams)
    console = Console(screen.out, screen.err, screen.say, lambda _: "")
    if show is not None:
        console = replace(console, out=lambda data: show(Chunk(False, data)), err=lambda data: show(Chunk(True, data)))
    return store.follow(run, console, how, teller(store, run.job, screen, streams))


def teller(store: RunStore, job: str, screen: Screen, streams: Streams) -> Tell:
    """Return what says how a run that was followed ended and why, or how to follow one that goes on."""

    def tell(followed: Followed) -> None:
        if followed.started:
            streams.result(f"{followed.started}\n")
        if followed.verdict:
            screen.say(followed.verdict)
        if followed.evidence is not None:
            say_diagnoses(followed.evidence, streams, screen.line)
        for each in followed.remarks:
            screen.say(each)
        if followed.goes_on:
            screen.say(followed.goes_on)
        if followed.started or followed.goes_on:
            hints(lambda verb: f"trainlaunch {verb} {job}{store.options}", screen.line)
        if followed.error is not None:
            raise followed.error

    return tell


def say_diagnoses(evidence: Evidence, streams: Streams, line: Callable[[str], None]) -> None:
    """Print why a run ended: one or two causes, or the bare evidence where nothing names one."""
    from trainlaunch.diagnose import explain_end

    diagnoses = explain_end(evidence)
    for diagnosis in diagnoses:
        line(framed_diagnosis(diagnosis, style_of(streams.err)))
    if not diagnoses and evidence.exit_code:
        line(f"trainlaunch: no known cause; {bare_evidence(evidence)}")


def framed_diagnosis(diagnosis: Diagnosis, style: TextStyle) -> str:
    """Return a diagnosis in the frame that errors have."""
    sure = "" if diagnosis.confidence == "certain" else f" ({diagnosis.confidence})"
    told = {"saw": shown(diagnosis.saw), "fix": sanitize(diagnosis.fix)}
    head = headline("cause", diagnosis.code, f"{diagnosis.sentence}{sure}", style)
    return SafeText("\n".join([head, *parts(told, style), help_line(diagnosis.code)]))


def bare_evidence(evidence: Evidence) -> str:
    """Return what is known about an end, without a guess."""
    asked = evidence.oom_killed is not None
    memory = human_size(evidence.memory) if evidence.memory else "none" if asked else "unknown"
    killed = str(evidence.oom_killed).lower() if asked else "unknown"
    peak = "unknown" if evidence.shm_peak is None else human_size(evidence.shm_peak)
    size = human_size(evidence.shm_size) if evidence.private_shm and evidence.shm_size else "unknown"
    reason = f"{evidence.reason}: {shown(evidence.words)}, " if evidence.reason else ""
    code = "unknown" if evidence.exit_code is None else evidence.exit_code
    return (
        f"{reason}exit code {code}, OOMKilled {killed}, memory limit {memory}, "
        f"/dev/shm peak {peak} of {size}, {_last_words(evidence.log)}"
    )


def _last_words(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if re.search(r"\w", line)]
    if any(TORCHRUN_ENDS in line for line in lines):  # its own long epilogue stands below the rank's error
        errors = [line for line in lines if _EXCEPTION.match(line) and TORCHRUN_ENDS not in line]
        lines = errors or lines
    return f"last line: {shown(lines[-1]) if lines else '(nothing printed)'}"
