"""What the verbs about runs share: a target's backend, and the words about a run's end."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from trainlaunch.cli.look import Look, look
from trainlaunch.cli.report import headline, help_line, parts
from trainlaunch.cli.run_argument import say_once
from trainlaunch.cli.streams import Streams
from trainlaunch.exit_codes import EXIT_BEFORE_START
from trainlaunch.units import human_size
from trainlaunch.visible import Visible, one_line, visible

if TYPE_CHECKING:
    from trainlaunch.diagnose.diagnosis import Diagnosis
    from trainlaunch.diagnose.evidence import Evidence
    from trainlaunch.plan.launch_plan import LaunchPlan
    from trainlaunch.run.backend import Backend, Session, Started
    from trainlaunch.run.watch import HangWatch

MOST_SHOWN = 300
TORCHRUN_ENDS = "ChildFailedError"
_EXCEPTION = re.compile(r"(\[rank\d+\]: *)?[A-Za-z_][\w.]*(Error|Exception|Interrupt)\b")


@contextlib.contextmanager
def backend_of(target: str) -> Iterator[Backend]:
    """Give the backend of a target, and close its connections afterwards. Raises TargetUnavailable."""
    from trainlaunch.run.backends import backend_named

    with contextlib.closing(backend_named(target, say_once)) as backend:
        yield backend


def code_of_all(
    backend: Backend, containers: tuple[Started, ...], sessions: Sequence[Session], say: Callable[[str], None]
) -> int:
    """Wait until a run has ended, or the first of its nodes has failed, and return its exit code as `code_of` does."""
    if len(containers) == 1:
        return code_of(backend, containers[0], sessions[0], say)
    from trainlaunch.run.multi_node import deciding, ends_of

    waits = zip(containers, sessions, strict=True)
    ends = ends_of([functools.partial(code_of, backend, each, session, say) for each, session in waits])
    code = next((each for each in ends if each), 0)
    # Those that had ended before answer in any order: the engine knows which was first.
    now = tuple(filter(None, (backend.inspect(each.id) for each in containers)))
    return (deciding(now).exit_code if now else None) or code


def code_of(backend: Backend, container: Started, session: Session, say: Callable[[str], None]) -> int:
    """Wait for the end of a run and return its exit code; 125, and why, where it has none."""
    code = session.exit_code()
    if code is None:
        now = backend.inspect(container.id)
        removed = f"{container.noun} {container.name} was removed while it was waited for"
        why = "" if now is None else now.error or "it was created and has not started"
        say(f"{now.noun} {now.name} has no exit code: {why}" if now is not None else removed)
        return EXIT_BEFORE_START
    if container.exit_code is None and container.status != "running":
        now = backend.inspect(container.id)  # the engine answers 0 for one that was never started
        if now is not None and now.exit_code is None:
            say(f"container {container.name} was created and has not started, so it has no exit code")
            return EXIT_BEFORE_START
    return code


def hints(command: Callable[[str], str], line: Callable[[str], None]) -> None:
    """Print how to follow a job that was left alone and how to end it; `command` gives a verb's command line."""
    line(f"follow it: {command('logs -f')}")
    line(f"end it:    {command('down')}")


def hang_watch(plan: LaunchPlan, redacted: Callable[[str], str] = str) -> HangWatch:
    """Return what tells of a log that its job will never end, in one sentence with the fix; empty where it may.

    `redacted` takes secrets out of a log before it is quoted.
    """
    memory = plan.job.resources.memory or 0

    def hangs(log: str) -> str:
        from trainlaunch.diagnose import explain_hang
        from trainlaunch.diagnose.evidence import Evidence

        known = Evidence(None, redacted(log), shm_size=plan.shm.size.value, memory=memory, target=plan.target)
        diagnosis = explain_hang(known)
        return f"{diagnosis.sentence}; {diagnosis.fix}" if diagnosis else ""

    return hangs


def say_diagnoses(evidence: Evidence, streams: Streams, line: Callable[[str], None]) -> None:
    """Print why a run ended: one or two causes, or the bare evidence where nothing names one."""
    from trainlaunch.diagnose import explain_end

    diagnoses = explain_end(evidence)
    for diagnosis in diagnoses:
        line(framed_diagnosis(diagnosis, look(streams.err)))
    if not diagnoses and evidence.exit_code:
        line(f"trainlaunch: no known cause; {bare_evidence(evidence)}")


def framed_diagnosis(diagnosis: Diagnosis, seen_as: Look) -> str:
    """Return a diagnosis in the frame that errors have."""
    sure = "" if diagnosis.confidence == "certain" else f" ({diagnosis.confidence})"
    told = {"saw": shown(diagnosis.saw), "fix": visible(diagnosis.fix)}
    head = headline("cause", diagnosis.code, f"{diagnosis.sentence}{sure}", seen_as)
    return Visible("\n".join([head, *parts(told, seen_as), help_line(diagnosis.code)]))


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


def shown(text: str) -> str:
    """Return a line of a job's as it may stand in one of ours: no control characters, at most about 300 characters."""
    clean = one_line(text)
    return clean if len(clean) <= MOST_SHOWN else f"{clean[: MOST_SHOWN - 60]} … {clean[-60:]}"


def _last_words(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if re.search(r"\w", line)]
    if any(TORCHRUN_ENDS in line for line in lines):  # its own long epilogue stands below the rank's error
        errors = [line for line in lines if _EXCEPTION.match(line) and TORCHRUN_ENDS not in line]
        lines = errors or lines
    return f"last line: {shown(lines[-1]) if lines else '(nothing printed)'}"
