"""What a symptom is asked about: the evidence of a run, and the facts of its whole log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from trainlaunch.diagnose.base.diagnosis import CERTAIN, Diagnosis, EvidenceLine, seen
from trainlaunch.diagnose.base.evidence import Evidence, RunEvent
from trainlaunch.diagnose.base.log_facts import Hit, LogFacts, Traceback
from trainlaunch.diagnose.base.log_patterns import LogPattern

# Exceptions that only repeat that another process, or the user, ended the job.
ECHOING = frozenset(
    {
        "ChildFailedError",
        "CalledProcessError",
        "SignalException",
        "DistBackendError",
        "WorkerCrashedError",
        "RayTaskError",
        "RayActorError",
        "ActorDiedError",
        "ProcessRaisedException",
        "ProcessExitedException",
        "EngineDeadError",
        "BrokenPipeError",
        "ConnectionResetError",
        "EOFError",
    }
)


@dataclass(frozen=True)
class Case:
    """One run, or one log."""

    evidence: Evidence
    facts: LogFacts

    @property
    def exit_code(self) -> int | None:
        """How it ended; None where it has not, or nobody knows."""
        return self.evidence.exit_code

    def hits(self, *texts: LogPattern, within: str = "") -> list[Hit]:
        """Return the lines that have one of the texts, by line; `within` is found in the traceback around them."""
        return [each for each in self.facts.hits(*texts) if not within or each.within(within)]

    def first(self, *texts: LogPattern, within: str = "") -> Hit | None:
        """Return the first line that has one of the texts, or None."""
        return next(iter(self.hits(*texts, within=within)), None)

    def event(self, *reasons: str) -> RunEvent | None:
        """Return the first thing noted of the run under one of these words, its own reason included."""
        own = RunEvent(self.evidence.reason, self.evidence.words)
        return next((each for each in (own, *self.evidence.events) if each.reason and each.reason in reasons), None)

    @cached_property
    def raised(self) -> Traceback | None:
        """The traceback that ended the script, as far as its log shows: the last that is no echo, where it first stood.

        One out of which another came, one that Python ignored, and one of a thread of multiprocessing's ended nothing.
        """
        ended = [each for each in self.facts.tracebacks if each.type and not each.ignored and not each.led_on]
        own = [each for each in ended if each.short_type not in ECHOING and not each.has(r"queues\.py.*_feed")]
        decisive = own or ended
        return decisive[-1] if decisive else None

    def raised_seen(self) -> EvidenceLine | None:
        """Return the last line of that traceback as evidence."""
        raised = self.raised
        return None if raised is None else EvidenceLine("log", raised.raised_line, raised.raised_text)


def place_in_script(traceback: Traceback) -> str:
    """Return ` at FILE:LINE` of the user's own innermost frame; `` where the log has none."""
    frame = traceback.user_frame
    return f" at {frame.file}:{frame.line}" if frame is not None else ""


def of_one_text(
    code: str,
    name: str,
    texts: tuple[LogPattern, ...],
    sentence: str,
    fix: str,
    confidence: str = CERTAIN,
    commands: tuple[str, ...] = (),
) -> Callable[[Case], Diagnosis | None]:
    """Return what finds a symptom that any one of these texts tells, wherever it stands in the log."""

    def diagnose(case: Case) -> Diagnosis | None:
        hit = case.first(*texts)
        return None if hit is None else Diagnosis(code, name, sentence, seen(hit), fix, confidence, commands)

    return diagnose
