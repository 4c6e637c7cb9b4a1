"""Signals: who sent one, as far as anybody says so."""

from __future__ import annotations

import re
import signal

from trainlaunch.diagnose.base.case import LIKELY, POSSIBLE, Case, EvidenceLine, Symptom, Told, seen
from trainlaunch.diagnose.base.log_facts import Hit
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.diagnose.base.memory_advice import more_memory
from trainlaunch.diagnose.symptoms.limits import PTHREAD
from trainlaunch.diagnose.symptoms.memory import OUT_OF_MEMORY
from trainlaunch.exit_codes import EXIT_INTERRUPTED, EXIT_SIGKILL, EXIT_SIGTERM
from trainlaunch.targets import KUBERNETES

_BY_CODE = {-9: "SIGKILL", -15: "SIGTERM"}  # as torchrun tells a rank's
_SIGNALS = {EXIT_SIGKILL: "SIGKILL", EXIT_SIGTERM: "SIGTERM"}
_RANK = LogPattern("SIG", r"Signal (?:9|15) \(SIG(?:KILL|TERM)\) received by PID")
_EXITCODE = LogPattern("exitcode", r"\bexitcode *[:=] *-(?:9|15)\b")
_SHELL = LogPattern("illed", r"^Killed$|: line \d+: +\d+ Killed\b")
_SPAWN = LogPattern("SIG", r"process \d+ terminated with signal SIG(?:KILL|TERM)\b")
_WORKER = LogPattern("illed", r"DataLoader worker \(.*\) is killed by signal: (?:Terminated|Hangup|Interrupt)")
_ASKED = re.compile(r"SIGTERM|Terminated|Hangup|Interrupt|-15\b")
_DEEPSPEED = LogPattern("return code = -", r"exits with return code = -(?:9|15)\b")
_ACTOR = LogPattern(
    "rror", r"Worker unexpectedly exits with a connection error code 2|ActorDiedError: |ActorUnavailableError: "
)
_BARE = "exit code {}, OOMKilled false, no signal sent through {}"


def _killed_from_outside(case: Case) -> Told | None:
    """Match 137 and 143, and the texts of SIGKILL, that nothing else explains."""
    evidence = case.evidence
    name = _SIGNALS.get(case.exit_code or 0)
    hit = case.first(_RANK, _EXITCODE, _SHELL, _SPAWN, _DEEPSPEED, _WORKER, _ACTOR)
    known = evidence.oom_killed or evidence.stopped or evidence.reason or evidence.unhealthy
    if (name is None and hit is None) or known:
        return None
    if name is None:
        return _process(case, hit)
    if evidence.oom_killed is None:
        return _unasked(case, name, hit)
    saw = _BARE.format(case.exit_code, evidence.where.runtime)
    return Told(
        f"{name} ended the job, and neither its memory limit nor {evidence.where.runtime} sent it",
        seen(saw, hit),
        _look(case, name),
        LIKELY,
    )


def _unasked(case: Case, name: str, hit: Hit | None) -> Told:
    """Return what an exit code alone tells: nobody asked the engine or the cluster."""
    memory = name == "SIGKILL"
    if not memory:
        sentence = "SIGTERM ended the job: a stop, a scheduler or a shutdown sent it; its log does not tell which"
        return Told(
            sentence,
            seen(f"exit code {case.exit_code}", hit),
            _look(case, name),
            LIKELY,
        )
    ask = "`kubectl get pod,events -o yaml`" if case.evidence.target == KUBERNETES.name else "`docker inspect NAME`"
    return Told(
        "SIGKILL ended the job, for memory most often; whether its own limit or the host's was met is unknown",
        seen(f"exit code {case.exit_code}", hit),
        f"give `--inspect` what {ask} prints, which tells of the limit; {_look(case, name)}",
        LIKELY,
    )


def _process(case: Case, hit: Hit | None) -> Told:
    if hit is not None and _ACTOR.found_in(hit.text):
        return Told(
            "a worker process of Ray's died without a word: killed for memory most often, or crashed in native code",
            seen(hit),
            "look for that worker's own last lines (`ray logs`), at `docker inspect` or the pod's status for "
            "OOMKilled, and "
            "for `Out of memory` in `sudo dmesg`; Ray itself does not know which it was",
            POSSIBLE,
        )
    failed = case.account.failed
    name = _BY_CODE.get(failed.code, "") if failed is not None else ""
    who = f"rank {failed.rank}" if failed is not None and name else "a process of the job"
    asked = name == "SIGTERM" or (not name and hit is not None and _ASKED.search(hit.text) is not None)
    why = "ended by a signal from outside, as by a stop of the job"
    if not asked:
        why = "killed by a signal from outside, for memory most often"
    return Told(
        f"{who} was {why}",
        seen(hit),
        _look(case, "SIGTERM" if asked else "SIGKILL"),
        LIKELY if name else POSSIBLE,
    )


def _look(case: Case, name: str) -> str:
    where = case.evidence.where
    if name != "SIGKILL":
        return "look for who sends SIGTERM: a scheduler, a shutdown of the host, or the job itself"
    if not where.enforces_limits:
        return f"look for `Out of memory` in `sudo dmesg`; where it is there, {more_memory(case.evidence)}"
    if not where.on_this_machine:
        return (
            "look for `Out of memory` in the node's kernel log; `kubectl get events` may name who deleted or drained it"
        )
    return (
        "look for `Out of memory` in `sudo dmesg`; with resources.memory below the host's, the next kill is attributed"
    )


_TORCHRUN = LogPattern(
    "SIG", r"Received (?:Signals\.)?SIG(?:TERM|INT|HUP|QUIT) death signal|got signal: (?:Signals\.)?(?:SIG|\d)"
)
_GOT = LogPattern("SignalException", r"SignalException: Process \d+ got signal")
_SCANCEL = LogPattern("rror", r"(?:JOB|STEP) \S+ ON \S+ CANCELLED AT [\d:T-]+(?: \*+)?\s*$")
_AGAIN = "start it again with `trainlaunch up` when it should go on"
_DEADLINE = "active_deadline"
_LONGER = "raise active_deadline; `trainlaunch doctor JOB` while it runs again shows whether it progresses or hangs"


def _stopped(case: Case) -> Told | None:
    """Match a stop of ours, signals sent through the engine, and the words of those who obeyed one."""
    evidence = case.evidence
    if evidence.oom_killed:
        return None
    if not evidence.stopped:
        return _by_its_words(case)
    by = evidence.stopped_by or f"someone through {evidence.where.runtime}"
    names = ", ".join(_name(each) for each in evidence.signals) or "no signal on record"
    saw = f"signals sent: {names}"
    if not evidence.where.on_this_machine:
        saw = "the pod was deleted while it ran"
    fix = _LONGER if evidence.stopped_by == _DEADLINE else _AGAIN
    if evidence.killed_by:
        again = f"a second {by}" if evidence.killed_by == by else evidence.killed_by
        sentence = f"{by} stopped the job, and {again} killed it before its grace period was over"
    elif signal.SIGKILL in evidence.signals and len(evidence.signals) > 1:
        sentence = f"{by} stopped the job, and it had not ended when its grace period was over"
        fix = "raise stop_grace_period if its checkpoint needs longer"
    else:
        sentence = f"{by} stopped the job"
    return Told(sentence, seen(saw), fix)


def _by_its_words(case: Case) -> Told | None:
    hit = case.first(_TORCHRUN, _GOT, _SCANCEL)
    interrupted = case.raised is not None and case.raised.type == "KeyboardInterrupt"
    if interrupted and case.first(PTHREAD) is not None:
        return None  # OpenBLAS sends SIGINT to itself where it gets no thread
    shown = hit or (case.raised_seen() if interrupted else None)
    if hit is not None and case.first(*OUT_OF_MEMORY) is not None:
        return None  # who is out of memory is cancelled afterwards
    if shown is None and case.exit_code != EXIT_INTERRUPTED:
        return None
    return Told(
        "a signal stopped the job: Ctrl-C, a stop of its container, or its scheduler",
        seen(shown or "exit code 130, which is 128 + SIGINT"),
        _AGAIN,
        LIKELY,
    )


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


_LIVENESS = "liveness probe failed: "
_STALL = "for one batch"


def _unhealthy(case: Case) -> Told | None:
    """Match a stop of ours for that reason, and a kubelet's."""
    words = case.evidence.unhealthy
    event = case.event("Unhealthy")
    if not words and event is not None and event.words.lower().startswith(_LIVENESS):
        words = event.words[len(_LIVENESS) :].removeprefix("unhealthy: ")
    if not words:
        return None
    fix = "put right what the sentence says; docs/health.md has all of them"
    if _STALL in words:
        fix = "while it waits, `trainlaunch doctor JOB` shows where; a batch that may take longer: raise stall_after"
    return Told(
        "the health check found the job unhealthy, and it was stopped",
        seen(EvidenceLine("inspect", 0, words)),
        fix,
    )


SYMPTOMS = (
    Symptom("TL612", "killed-from-outside", _killed_from_outside),
    Symptom("TL611", "stopped", _stopped),
    Symptom("TL671", "unhealthy", _unhealthy),
)
