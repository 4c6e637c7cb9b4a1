"""Which cause comes first, what is only the echo of another, and all texts that symptoms ask for.

A log full of consequences names many things. The order is that of causes: what ended a run from outside, what was
refused before it began, what a full or missing resource breaks, what is wrong in the script, and at last what merely
repeats that something else happened.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from trainlaunch.diagnose.base import account, bus_error
from trainlaunch.diagnose.base.case import CERTAIN, LIKELY, POSSIBLE, Case, Diagnosis, Symptom
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.diagnose.symptoms import (
    clusters,
    full_shm,
    gpu_drivers,
    gpu_faults,
    hubs,
    images,
    limits,
    loading,
    memory,
    rank_faults,
    script_faults,
    shm_names,
    signals,
    starts,
    worker_faults,
)
from trainlaunch.exit_codes import EXIT_SIGKILL, EXIT_SIGTERM

FAMILIES = (
    starts,
    clusters,
    full_shm,
    shm_names,
    limits,
    memory,
    signals,
    gpu_drivers,
    gpu_faults,
    rank_faults,
    images,
    hubs,
    worker_faults,
    loading,
    script_faults,
)
BY_NAME: dict[str, Symptom] = {each.name: each for family in FAMILIES for each in family.SYMPTOMS}
_NAMES = """
config-refused machine-refused evicted deadline-exceeded preempted node-lost
image-not-pulled container-not-created gpu-lost gpu-driver gpu-missing command-not-started
launch-error stopped unhealthy shm-stale shm-exhausted-hang shm-exhausted-semaphore
shm-exhausted shm-exhausted-bus-error truncated-mmap shm-unwritable shm-missing shm-unlinked
shm-name-collision memlock nccl-shm nccl-attach fd-limit map-count
old-seccomp thread-limit tmpdir-unusable shm-manager disk-full oom-killed-worker
oom-killed main-guard unpicklable cuda-in-fork user-without-name gpu-ordinal
cuda-oom batchnorm-last-batch gpu-peer-denied network-interface rendezvous hub-access
module-missing file-missing permission-denied fork-deadlock worker-exception worker-segfault
worker-aborted dataloader-timeout pin-memory-thread dist-timeout-secondary worker-exited killed-from-outside
arguments-refused own-exit-code rank-ended python-exception ray-shm iterable-length
oversubscription slow-loading benign unknown
"""
ORDER: tuple[Symptom, ...] = tuple(BY_NAME[each] for each in _NAMES.split())
# They tell that something happened elsewhere; beside a cause they are its echo.
ECHOES = frozenset(
    {
        "worker-exception",
        "worker-exited",
        "worker-segfault",
        "worker-aborted",
        "pin-memory-thread",
        "dataloader-timeout",
        "dist-timeout-secondary",
        "killed-from-outside",
        "launch-error",
    }
)
# They say something only where nothing else does.
LAST_RESORTS = frozenset({"rank-ended", "python-exception", "own-exit-code", "unknown", "benign"})
# An exit code of 0 says that the job is content with itself: its log may quote anything, but these cost speed or data.
WITH_SUCCESS = frozenset({"oom-killed", "ray-shm", "iterable-length", "oversubscription", "benign"})
# They name an exception that a process of the job passed on.
WRAPPING = frozenset({"worker-exception", "pin-memory-thread"})
# What a rank's exit code, as torchrun tells it, stands for by itself; NCCL's watchdog sends SIGABRT to its own.
OF_SIGNALS = {-9: "killed-from-outside", -15: "killed-from-outside", -11: "worker-segfault"}
KILLED = frozenset({EXIT_SIGKILL, EXIT_SIGTERM})
# What ends in one of these signals; a log that went on after anything else does not tell who sent it.
KILLS = frozenset(
    {
        "evicted",
        "deadline-exceeded",
        "preempted",
        "node-lost",
        "stopped",
        "unhealthy",
        "oom-killed-worker",
        "oom-killed",
        "killed-from-outside",
        "unknown",
    }
) | {"oversubscription", "ray-shm", "iterable-length"}
# They don't end a job: an exception that does comes before them.
HARMLESS = frozenset({"ray-shm", "iterable-length", "oversubscription", "benign"})


def ranked(case: Case) -> tuple[Diagnosis, ...]:
    """Return what the symptoms find, causes first, each echo with what it is an echo of."""
    every = [each for symptom in ORDER if (each := symptom.diagnose(case)) is not None and _counts(case, each)]
    found = [weighed for each in every if (weighed := _weighed(case, each)) is not None]
    causes = [each for each in found if each.symptom not in ECHOES | LAST_RESORTS | HARMLESS]
    echoes = [each for each in found if each.symptom in ECHOES]
    harmless = [each for each in found if each.symptom in HARMLESS - LAST_RESORTS]
    if case.account.explains_itself:
        causes, echoes = _by_exception(case, found, causes, echoes)
        harmless = [each for each in harmless if each not in causes]
    if not causes:
        causes = _of_failed_rank(case, found)
        echoes = [each for each in echoes if each not in causes]
    weak = not case.account.explains_itself and all(each.confidence == POSSIBLE for each in causes)
    if echoes and (not causes or (weak and echoes[0].confidence == CERTAIN)):
        causes, echoes = [*echoes[:1], *causes], echoes[1:]
    if not causes:
        shown = {seen.line for each in harmless for seen in each.evidence if seen.line}
        ended = [each for each in found if each.symptom == "rank-ended"]
        causes = ended or [each for each in found if each.symptom in LAST_RESORTS - {"unknown", "benign"}]
        causes = [each for each in causes if not shown.intersection(seen.line for seen in each.evidence if seen.line)]
    if not causes and not harmless:
        causes = [each for each in found if each.symptom in LAST_RESORTS][:1]
    causes = _without_repeats(sorted(causes, key=lambda each: each.confidence == POSSIBLE))
    told = [replace(each, echo_of=causes[0].symptom) for each in echoes if each.symptom != causes[0].symptom]
    harmless = [replace(each, is_note=bool(causes)) for each in harmless]
    if not causes and case.exit_code:  # it may have made it slow, and did not end it
        harmless = [replace(each, confidence=POSSIBLE) for each in harmless]
    return (*causes, *harmless, *told)


def _by_exception(
    case: Case, found: list[Diagnosis], causes: list[Diagnosis], echoes: list[Diagnosis]
) -> tuple[list[Diagnosis], list[Diagnosis]]:
    """Return causes and echoes of a run that an exception ended: beside it only what stands in it is a cause."""
    own = [each for each in found if each.symptom not in ECHOES | LAST_RESORTS and _stands_in_end(case, each)]
    wrapped = [each for each in echoes if each.symptom in WRAPPING and _stands_in_end(case, each)]
    plain = [each for each in found if each.symptom == "python-exception"]
    causes = own or wrapped or plain or causes
    return causes, [each for each in echoes if each not in causes]


def _of_failed_rank(case: Case, found: list[Diagnosis]) -> list[Diagnosis]:
    """Return what is said of the rank that torchrun saw fail first, where only the others lost a peer."""
    failed = case.account.failed
    if failed is None:
        return []
    name = OF_SIGNALS.get(failed.code, "rank-ended" if failed.code > 0 and case.account.failed_in_silence else "")
    return [each for each in found if each.symptom == name]


def _stands_in_end(case: Case, diagnosis: Diagnosis) -> bool:
    """Whether a finding is of the exception that ended the run, or of somebody who watched it."""
    lines = [each.line for each in diagnosis.evidence if each.source == "log"]
    told = diagnosis.symptom not in KILLS  # who cancels the rest of a job speaks right behind the exception
    return not lines or any(case.account.holds(line, message=told) for line in lines)


def _weighed(case: Case, diagnosis: Diagnosis) -> Diagnosis | None:
    """Return a finding as sure as what stands below it allows; None where the run went on after it."""
    account, code = case.account, case.exit_code
    if not diagnosis.evidence or any(each.source != "log" for each in diagnosis.evidence):
        return diagnosis
    if all(each.line > account.last_line > 0 for each in diagnosis.evidence):
        return diagnosis  # it stands below all that was caught
    if account.was_handled and diagnosis.symptom not in HARMLESS | {"unknown"}:
        return None
    if not account.went_on:
        return _after_prose(case, diagnosis)
    if (code in KILLED or case.evidence.oom_killed) and diagnosis.symptom not in KILLS:
        return None
    if code is None:
        quoted = diagnosis.symptom not in KILLS and not any(account.raised_at(each.line) for each in diagnosis.evidence)
        dropped = quoted or diagnosis.symptom in ECHOES | LAST_RESORTS
        return None if dropped else replace(diagnosis, confidence=POSSIBLE)
    if diagnosis.symptom in LAST_RESORTS | ECHOES:
        return replace(diagnosis, confidence=POSSIBLE)
    return replace(diagnosis, confidence=LIKELY) if diagnosis.confidence == CERTAIN else diagnosis


def _after_prose(case: Case, diagnosis: Diagnosis) -> Diagnosis | None:
    """Return a finding as sure as it is where somebody went on to speak of something else."""
    if not case.account.spoke_after(max(each.line for each in diagnosis.evidence)):
        return diagnosis
    if case.exit_code in KILLED and diagnosis.symptom not in KILLS:
        return None
    raised = any(case.account.raised_at(each.line) for each in diagnosis.evidence)
    if case.exit_code is None and not raised and diagnosis.symptom not in KILLS:
        return replace(diagnosis, confidence=POSSIBLE)
    return replace(diagnosis, confidence=LIKELY) if diagnosis.confidence == CERTAIN else diagnosis


def _counts(case: Case, diagnosis: Diagnosis) -> bool:
    """Whether a finding means something for a run that ended as this one did."""
    if case.exit_code != 0:
        return True
    if diagnosis.symptom == "oom-killed":
        return case.evidence.oom_killed is True
    return diagnosis.symptom in WITH_SUCCESS


def _without_repeats(causes: list[Diagnosis]) -> list[Diagnosis]:
    """Return each symptom once, and no second cause out of the same lines."""
    kept: list[Diagnosis] = []
    for each in causes:
        lines = {seen.line for seen in each.evidence if seen.line}
        taken = {seen.line for one in kept for seen in one.evidence if seen.line}
        if each.symptom not in {one.symptom for one in kept} and not (lines and lines <= taken):
            kept.append(each)
    return kept


@cache
def all_texts() -> tuple[LogPattern, ...]:
    """Return each text once; a symptom may ask for another's."""
    modules = (account, bus_error, *FAMILIES)
    return tuple(
        dict.fromkeys(each for module in modules for each in vars(module).values() if isinstance(each, LogPattern))
    )
