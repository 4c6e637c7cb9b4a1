"""How a log ended: the last words of each rank, which of them came first, and what may explain them.

A text that stands far above the end, after which the run went on, explains nothing: it was caught. What a rank says
that lost another is an echo of the other's end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from trainlaunch.diagnose.base.line_signs import GOES_ON, WARNED
from trainlaunch.diagnose.base.log_facts import HEADER, Hit, LogFacts, Traceback
from trainlaunch.diagnose.base.log_patterns import LogPattern

FAR = 400  # lines between two texts that don't belong to one end
NEAR = 40  # lines before a lost peer, within which the peer said why it ended
TAIL = 12  # lines of a message after its first
OPENED = LogPattern(HEADER, beside=True)  # no symptom asks for it: a traceback begins where a text is looked for
RESTARTED = LogPattern("FAILED. ", r"\d{1,6}/\d{1,6} attempts left; will restart worker group", beside=True)
ROOT_CAUSE = LogPattern("Root Cause (", r"Root Cause \(first observed failure\)", beside=True)
RANK = LogPattern("local_rank: ", r"^\s*rank +: (?P<rank>\d{1,6}) \(local_rank: (?P<local>\d{1,4})\)", beside=True)
FAILED = LogPattern(
    "exitcode", r"failed \(exitcode: (?P<code>-?\d{1,5})\) local_rank: (?P<local>\d{1,4}) \(pid: \d{1,9}\)"
)
CODE = LogPattern("exitcode", r"^\s*exitcode +: (?P<code>-?\d{1,5}) \(pid: \d{1,9}\)", beside=True)
_SUMMARY = re.compile(r"^\s*(?:exitcode +: -?\d{1,5} \(pid|traceback +: )")
_BARE = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b")
_QUEUE = re.compile(r"(?:_?queue\.)?Empty$")  # what was to fill it is gone
_HOOK = re.compile(r"(?:^| )rank\d{1,6} $")  # torch prefixes only what ends the process
_NUMBER = re.compile(r"(?:^| )(?:rank|local_rank|default)?(\d{1,6}) $")
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
        "RaySystemError",
        "ActorDiedError",
        "ProcessRaisedException",
        "ProcessExitedException",
        "EngineDeadError",
        "BrokenPipeError",
        "ConnectionResetError",
        "ConnectionRefusedError",
        "EOFError",
        "KeyboardInterrupt",
        "PTXASError",
        "Empty",
    }
)
PEER = re.compile(
    r"Connection closed by peer|Connection reset by peer|Timed out waiting \d{1,12}ms|Broken pipe|failed to recv, got 0"
    r"|Application timeout caused pair closure"
    r"|NCCL communicator (?:was|has been) aborted|collective operation timeout|remote process exited|have timed out"
    r"|failed to pass monitoredBarrier|wait timeout after \d{1,12}ms|Socket Timeout|store->get\("
)
_OPAQUE = re.compile(
    r"DataLoader worker \(pid|DataLoader timed out|Pin memory thread exited|exited unexpectedly|received signal"
    r"|got signal|terminated with (?:exit|signal)|NVML_SUCCESS == r INTERNAL ASSERT|No CUDA GPUs are available"
    r"|CUDA error: (?:unknown"
    r"|unspecified|an illegal memory)"
)


def is_echo(traceback: Traceback) -> bool:
    """Whether what a traceback raised tells only that something else ended."""
    said = traceback.message
    known = traceback.short_type in ECHOING or PEER.search(said) is not None or _OPAQUE.search(said) is not None
    return known or traceback.has(r"queues\.py.*_feed")


def rank_of(owner: str) -> str:
    """Return the number of the rank whose line it is; `` where its prefix names none."""
    found = _NUMBER.search(owner)
    return found[1] if found else ""


class RankEnd(NamedTuple):
    """What torchrun says of the rank that ended first; `rank` is its local one where the line has no other."""

    rank: str
    code: int
    line: int
    text: str


class _Said(NamedTuple):
    first: int
    last: int
    owner: str
    traceback: Traceback | None = None
    text: str = ""


class Account:
    """The account of one log's end."""

    def __init__(self, facts: LogFacts) -> None:
        self._facts = facts
        self.attempt = max((each.line for each in facts.hits(RESTARTED)), default=0)
        self.failed = self._rank_that_failed()
        every = [each for each in _events(facts) if each.last > self.attempt]
        every = [each for each in every if each.traceback is not None or not _is_handled(each.text)] or every
        self._end = self._last_island(every)
        self.first_line = min((each.first for each in self._end), default=0)
        self.last_line = max((each.last for each in self._end), default=0)
        self.root = self._root(every)
        self._span = self._span_of(self.root)

    @property
    def went_on(self) -> bool:
        """Whether the run printed what only one prints that works, after all that it said of an end."""
        return any(each.line > self.last_line for each in self._facts.went_on)

    def spoke_after(self, line: int) -> bool:
        """Whether somebody said something after a line that is neither of an error nor of its consequences."""
        return any(each > line for each in self._facts.prose)

    @property
    def was_handled(self) -> bool:
        """Whether the last words, or those after them, say how the run goes on."""
        own = (each.text for each in self._end if each.traceback is None)
        return self._handled_after(self.last_line) or any(map(GOES_ON.search, own))

    @property
    def explains_itself(self) -> bool:
        """Whether the end is an exception of a kind that needs no other reason."""
        return self.root is not None and not is_echo(self.root)

    @property
    def failed_in_silence(self) -> bool:
        """Whether ranks say something of the end, and the one that torchrun saw fail first is not among them."""
        ranks = {rank_of(each.owner) for each in self._end} - {""}
        return self.failed is not None and bool(ranks) and self.failed.rank not in ranks

    def holds(self, line: int, *, message: bool = True) -> bool:
        """Whether a line is part of the exception that ended the run, its chain and the rest of its message."""
        return any(first <= line <= (last if message else last - TAIL) for first, last in self._span)

    def raised_at(self, line: int) -> bool:
        """Whether a line is part of a traceback."""
        return any(each.line <= line <= each.last_line for each in self._facts.tracebacks)

    def explaining(self, hits: Iterable[Hit]) -> list[Hit]:
        """Return those lines that may explain the end, by line."""
        of_end = [each for each in hits if self._is_of_end(each)]
        decisive = [each for each in of_end if self._within(each)] if self.explains_itself else []
        return decisive or of_end

    def _handled_after(self, line: int) -> bool:
        return any(each.handled for each in self._facts.went_on if 0 < each.line - line <= 3)

    def _within(self, hit: Hit) -> bool:
        return self.holds(hit.line) or (hit.traceback is not None and self.holds(hit.traceback.line))

    def _is_of_end(self, hit: Hit) -> bool:
        if hit.line <= self.attempt and (hit.traceback is None or hit.traceback.last_line <= self.attempt):
            return False
        if self._is_of_ended_rank(hit):
            return False
        if hit.traceback is not None:
            return any(each.traceback is hit.traceback for each in self._end) or self._within(hit)
        return any(each.first == hit.line for each in self._end)

    def _is_of_ended_rank(self, hit: Hit) -> bool:
        """Whether torchrun's summary tells it of a rank that it ended itself, because another had failed."""
        if not _SUMMARY.match(hit.text):
            return False
        marks = [each.line for each in self._facts.hits(ROOT_CAUSE)]
        return bool(marks) and not any(mark < hit.line <= mark + 8 for mark in marks)

    def _rank_that_failed(self) -> RankEnd | None:
        roots = [each.line for each in self._facts.hits(ROOT_CAUSE) if each.line > self.attempt]
        failed = [each for each in self._facts.hits(FAILED) if each.line > self.attempt]
        ranks, codes = ([each for each in self._facts.hits(text) if roots] for text in (RANK, CODE))
        of_root = [each for each in ranks if 0 < each.line - roots[-1] <= 6]
        code = [each for each in codes if 0 < each.line - roots[-1] <= 8]
        if of_root and code:
            return RankEnd(of_root[0].match["rank"], int(code[0].match["code"]), code[0].line, code[0].text)
        if not failed:
            return None
        return RankEnd(failed[0].match["local"], int(failed[0].match["code"]), failed[0].line, failed[0].text)

    def _parts(self, early: _Said, late: int, owner: str) -> bool:
        """Whether the run went on between two texts, or too much stands between them."""
        hook = _HOOK.search(early.owner) is not None
        if late - early.last > (FAR if not hook else 5 * FAR):
            return True
        owners = {early.owner, owner} if early.owner else {"", owner}
        return any(
            early.last < each.line < late and (each.owner in owners or (not each.owner and not hook))
            for each in self._facts.went_on
            if not hook or each.owner == early.owner
        )

    def _last_island(self, every: Sequence[_Said]) -> list[_Said]:
        """Return what was said at the end, with nothing of a run that went on between."""
        if not every:
            return []
        last = every[-1]
        first, owner, island = last.first, last.owner, [last]
        apart = False
        for each in reversed(every[:-1]):
            if (apart and not _HOOK.search(each.owner)) or self._parts(each, first, owner):
                apart = True
                continue
            island.append(each)
            first = min(first, each.first)
        return island

    def _root(self, every: Sequence[_Said]) -> Traceback | None:
        """Return the exception of the rank that ended by itself first, else the last that was raised."""
        ended = [each.traceback for each in self._end if each.traceback is not None and _ends(each.traceback)]
        own = [each for each in ended if not is_echo(each)]
        if not own and any(PEER.search(each.text) or _QUEUE.match(each.text) for each in self._end):
            own = self._peers(every)
        if not own:
            return max(ended, key=lambda each: each.last_line, default=None)
        bare = [each for each in self._end if each.traceback is None and _BARE.match(each.text)]
        last_by_owner = {each.owner: each for each in sorted(own, key=lambda each: each.last_line)}
        of_rank = [each for each in last_by_owner.values() if self._is_of_failed(each)]
        labelled = [each for owner, each in last_by_owner.items() if owner]
        found = min(of_rank or labelled or last_by_owner.values(), key=lambda each: each.last_line)
        after = [each for each in bare if each.first > found.last_line and each.owner == found.owner]
        return None if any(not PEER.search(each.text) and not _OPAQUE.search(each.text) for each in after) else found

    def _is_of_failed(self, traceback: Traceback) -> bool:
        return self.failed is not None and rank_of(traceback.owner) == self.failed.rank

    def _peers(self, every: Sequence[_Said]) -> list[Traceback]:
        """Return what was raised shortly before a peer was lost; the others had gone on until then."""
        near = [each.traceback for each in every if 0 < self.first_line - each.last <= NEAR and each.traceback]
        ended = [each for each in near if _ends(each) and not is_echo(each)]
        return [each for each in ended if not self._handled_after(each.last_line)]

    def _span_of(self, root: Traceback | None) -> list[tuple[int, int]]:
        if root is None:
            return []
        known = sorted(
            (each for each in self._facts.tracebacks if each.owner == root.owner), key=lambda each: each.line
        )
        first, spans = (
            root.line - 3 * bool(root.worker),
            [(root.line, root.last_line + TAIL), (root.line, root.raised_line + TAIL)],
        )
        for each in reversed(known):
            joined = each.led_on or (root.worker and each.worker)
            if each is not root and joined and 0 <= first - max(each.raised_line, each.line) <= TAIL:
                first = each.line
                spans.append((each.line, each.raised_line + TAIL))
        return spans


def _is_handled(text: str) -> bool:
    return GOES_ON.search(text) is not None or WARNED.search(text) is not None


def _ends(traceback: Traceback) -> bool:
    return bool(traceback.type) and not traceback.ignored and not traceback.led_on


def _events(facts: LogFacts) -> list[_Said]:
    raised = [
        _Said(each.line, max(each.last_line, each.line), each.owner, each, each.raised_text)
        for each in facts.tracebacks
    ]
    bare = [
        _Said(each.line, each.line, each.owner, None, each.text)
        for each in facts.ending_hits()
        if each.traceback is None
    ]
    return sorted([*raised, *bare], key=lambda each: each.last)
