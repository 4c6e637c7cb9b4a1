"""What a symptom is asked about, the evidence of a run and the facts of its whole log, and what it answers."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from trainlaunch.diagnose.base.account import Account, is_echo, rank_of
from trainlaunch.diagnose.base.container_snapshot import ContainerSnapshot
from trainlaunch.diagnose.base.evidence import Evidence, RunEvent
from trainlaunch.diagnose.base.log_facts import Hit, LogFacts, Traceback
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.targets import KUBERNETES

CERTAIN = "certain"
LIKELY = "likely"
POSSIBLE = "possible"
_ONE_SYMPTOM = {"shm-exhausted-semaphore": "shm-exhausted", "shm-exhausted-bus-error": "shm-exhausted"}


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    """What shows a cause: `source` is log, inspect, events, end or machine; `line` counts from 1, 0 without lines."""

    source: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One cause. `sentence` is what happened, `evidence` what shows it, best first, `fix` what to type.

    `name` is its manual's. `commands` are whole lines for a shell, where a fix has some. `echo_of` names the symptom
    of which this one is only a consequence, `` where it is a cause of its own. `is_note`: it costs speed or data, and
    something else ended the job.
    """

    code: str
    name: str
    sentence: str
    evidence: tuple[EvidenceLine, ...]
    fix: str
    confidence: str = CERTAIN
    commands: tuple[str, ...] = ()
    echo_of: str = ""
    is_note: bool = False

    @property
    def saw(self) -> str:
        """The first piece of its evidence."""
        return self.evidence[0].text if self.evidence else ""

    def redacted(self, redacted: Callable[[str], str]) -> Diagnosis:
        """Return it with what may quote a log changed by a function that takes secrets out."""
        evidence = tuple(replace(each, text=redacted(each.text)) for each in self.evidence)
        return replace(self, evidence=evidence, sentence=redacted(self.sentence), fix=redacted(self.fix))

    @property
    def symptom(self) -> str:
        """The symptom: several codes tell ways in which /dev/shm is seen to be full."""
        return _ONE_SYMPTOM.get(self.name, self.name)


def seen(*found: Hit | EvidenceLine | str | None) -> tuple[EvidenceLine, ...]:
    """Return evidence from lines of a log, or from words about the end; None is left out."""
    return tuple(_seen(each) for each in found if each)


def _seen(found: Hit | EvidenceLine | str) -> EvidenceLine:
    if isinstance(found, EvidenceLine):
        return found
    return (
        EvidenceLine("end", 0, found) if isinstance(found, str) else EvidenceLine(found.source, found.line, found.text)
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

    @cached_property
    def account(self) -> Account:
        """How its log ended."""
        return Account(self.facts)

    def hits(self, *texts: LogPattern, within: str = "") -> list[Hit]:
        """Return the lines that have one of the texts and may explain the end, by line.

        `within` is found in the traceback around them.
        """
        ending = self.facts.hits(*(each for each in texts if not each.beside))
        beside = self.facts.hits(*(each for each in texts if each.beside))
        found = self.account.explaining([each for each in ending if not within or each.within(within)])
        others = [each for each in beside if each.line > self.account.attempt and (not within or each.within(within))]
        return sorted([*found, *others], key=lambda each: each.line)

    def first(self, *texts: LogPattern, within: str = "") -> Hit | None:
        """Return the first line that has one of the texts, or None."""
        return next(iter(self.hits(*texts, within=within)), None)

    def event(self, *reasons: str) -> RunEvent | None:
        """Return the first thing noted of the run under one of these words, its own reason included."""
        own = RunEvent(self.evidence.reason, self.evidence.words)
        return next((each for each in (own, *self.evidence.events) if each.reason and each.reason in reasons), None)

    def noted(self, *reasons: str) -> EvidenceLine | None:
        """Return such a thing as evidence."""
        event = self.event(*reasons)
        return None if event is None else EvidenceLine("events", 0, f"{event.reason}: {event.words}".rstrip(": "))

    def by_target(self, pod: str, container: str, host: str) -> str:
        """Return what is so of the run's target."""
        if self.evidence.target == KUBERNETES.name:
            return pod
        return container if self.evidence.where.starts_container else host

    @property
    def raised(self) -> Traceback | None:
        """The exception that ended the script, of the rank that ended first, as far as its log shows."""
        return self.account.root

    @property
    def end(self) -> str:
        """How it ended in one line, as far as log and exit code tell; `` where they don't."""
        raised, failed, code = self.raised, self.account.failed, self.exit_code
        if code == 0:
            return ""
        if raised is not None and (not is_echo(raised) or failed is None) and not self.account.went_on:
            rank = rank_of(raised.owner)
            who = f"rank {rank} raised " if rank else ""
            message = f": {raised.message}" if raised.message else ""
            return f"{who}{raised.type}{message}{place_in_script(raised)}"
        if failed is not None:
            return f"rank {failed.rank} ended first, with exit code {failed.code}"
        return f"exit code {code}, which is 128 + {_signal(code - 128)}" if code is not None and code > 128 else ""

    def raised_seen(self) -> EvidenceLine | None:
        """Return the last line of that traceback as evidence."""
        raised = self.raised
        return None if raised is None else EvidenceLine("log", raised.raised_line, raised.raised_text)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def place_in_script(traceback: Traceback) -> str:
    """Return ` at FILE:LINE` of the user's own innermost frame; `` where the log has none."""
    frame = traceback.user_frame
    return f" at {frame.file}:{frame.line}" if frame is not None else ""


class Told(NamedTuple):
    """What a symptom tells of a run, in the terms of `Diagnosis`."""

    sentence: str
    evidence: tuple[EvidenceLine, ...]
    fix: str
    confidence: str = CERTAIN
    commands: tuple[str, ...] = ()


class Symptom(NamedTuple):
    """A symptom: `tell` is asked about an end, `tell_live` about what shows in a run that goes on."""

    code: str
    name: str
    tell: Callable[[Case], Told | None]
    tell_live: Callable[[Case, ContainerSnapshot], Told | None] = lambda case, look: None

    def diagnose(self, case: Case, look: ContainerSnapshot | None = None) -> Diagnosis | None:
        """Return what it tells of an end, or with a look of a run that goes on; None where it is not the cause."""
        told = self.tell(case) if look is None else self.tell_live(case, look)
        return None if told is None else Diagnosis(self.code, self.name, *told)


class Story(NamedTuple):
    """One way in which a symptom shows: its texts, what happened, what to type.

    `sentence` and `fix` may name groups of the text's match; `within` is found in the traceback around it, `also` are
    texts that are shown beside it. `reasons` are a cluster's words for the same, which count more than a text.
    """

    texts: tuple[LogPattern, ...]
    sentence: str
    fix: str
    confidence: str = CERTAIN
    commands: tuple[str, ...] = ()
    within: str = ""
    also: tuple[LogPattern, ...] = ()
    reasons: tuple[str, ...] = ()


def told_by(case: Case, stories: tuple[Story, ...]) -> Told | None:
    """Return what the first of these stories tells that a run has a text of."""
    for story in stories:
        noted = case.noted(*story.reasons)
        hit = case.first(*story.texts, within=story.within) if noted is None else None
        if hit is not None or noted is not None:
            groups = {key: value or "" for key, value in (hit.match.groupdict() if hit else {}).items()}
            sentence, fix = (_filled(each, groups) for each in (story.sentence, story.fix))
            shown = seen(noted or hit, *map(case.first, story.also))
            return Told(sentence, shown, fix, story.confidence, story.commands)
    return None


def of_stories(code: str, name: str, stories: tuple[Story, ...]) -> Symptom:
    """Return a symptom that any of these stories tells; the first story counts."""
    return Symptom(code, name, lambda case: told_by(case, stories))


def _filled(text: str, groups: dict[str, str]) -> str:
    """Return a sentence with `<group>` filled in; braces are a job file's own."""
    for key, value in groups.items():
        text = text.replace(f"<{key}>", value)
    return text


def of_one_text(
    code: str,
    name: str,
    texts: tuple[LogPattern, ...],
    sentence: str,
    fix: str,
    confidence: str = CERTAIN,
    commands: tuple[str, ...] = (),
) -> Symptom:
    """Return a symptom that any one of these texts tells."""
    return of_stories(code, name, (Story(texts, sentence, fix, confidence, commands),))
