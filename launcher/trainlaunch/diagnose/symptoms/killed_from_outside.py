from __future__ import annotations

import re

from trainlaunch.diagnose.base.case import LIKELY, POSSIBLE, Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_facts import Hit
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.diagnose.base.memory_advice import more_memory
from trainlaunch.exit_codes import EXIT_SIGKILL, EXIT_SIGTERM
from trainlaunch.targets import KUBERNETES

CODE = "TL612"
NAME = "killed-from-outside"
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


def diagnose(case: Case) -> Diagnosis | None:
    """Match 137 and 143, and the texts of SIGKILL, that nothing else explains."""
    evidence = case.evidence
    name = _SIGNALS.get(case.exit_code or 0)
    hit = case.first(_RANK, _EXITCODE, _SHELL, _SPAWN, _DEEPSPEED, _WORKER, _ACTOR)
    if (name is None and hit is None) or evidence.oom_killed or evidence.stopped or evidence.reason:
        return None
    if name is None:
        return _process(case, hit)
    if evidence.oom_killed is None:
        return _unasked(case, name, hit)
    saw = _BARE.format(case.exit_code, evidence.where.runtime)
    return Diagnosis(
        CODE,
        NAME,
        f"{name} ended the job, and neither its memory limit nor {evidence.where.runtime} sent it",
        seen(saw, hit),
        _look(case, name),
        LIKELY,
    )


def _unasked(case: Case, name: str, hit: Hit | None) -> Diagnosis:
    """Return what an exit code alone tells: nobody asked the engine or the cluster."""
    memory = name == "SIGKILL"
    if not memory:
        sentence = "SIGTERM ended the job: a stop, a scheduler or a shutdown sent it; its log does not tell which"
        return Diagnosis(CODE, NAME, sentence, seen(f"exit code {case.exit_code}", hit), _look(case, name), LIKELY)
    ask = "`kubectl get pod,events -o yaml`" if case.evidence.target == KUBERNETES.name else "`docker inspect NAME`"
    return Diagnosis(
        CODE,
        NAME,
        "SIGKILL ended the job, for memory most often; nobody has asked yet whether its own limit or the "
        "machine's was met",
        seen(f"exit code {case.exit_code}", hit),
        f"give `--inspect` what {ask} prints, which tells of the limit; {_look(case, name)}",
        LIKELY,
    )


def _process(case: Case, hit: Hit | None) -> Diagnosis:
    if hit is not None and _ACTOR.found_in(hit.text):
        return Diagnosis(
            CODE,
            NAME,
            "a worker process of Ray's died without a word: killed for memory most often, or crashed in native code",
            seen(hit),
            "look for that worker's own last lines (`ray logs`), at `docker inspect` or the pod's status for "
            "OOMKilled, and "
            "for `Out of memory` in `sudo dmesg`; Ray itself does not know which it was",
            POSSIBLE,
        )
    if hit is not None and _ASKED.search(hit.text):
        return Diagnosis(
            CODE,
            NAME,
            "a process of the job was ended by a signal from outside, as by a stop of the job",
            seen(hit),
            _look(case, "SIGTERM"),
            POSSIBLE,
        )
    return Diagnosis(
        CODE,
        NAME,
        "a process of the job was killed by a signal from outside, for memory most often",
        seen(hit),
        _look(case, "SIGKILL"),
        POSSIBLE,
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
    return "look for `Out of memory` in `sudo dmesg`; a lower resources.memory would be met first, and named"
