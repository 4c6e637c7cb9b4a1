"""SIGBUS: who died of it, and whether /dev/shm can be the reason. Two symptoms ask this."""

from __future__ import annotations

from typing import NamedTuple

from trainlaunch.diagnose.base.case import Case
from trainlaunch.diagnose.base.log_facts import Hit
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.diagnose.base.memory_advice import shm_place
from trainlaunch.exit_codes import EXIT_SIGBUS
from trainlaunch.units import GIB, human_size

ROOM = 4 * GIB  # free in /dev/shm, with which no ordinary batch fills it
IN_WORKER = LogPattern("us error encountered in worker", r"Unexpected bus error encountered in worker")
WORKER_KILLED = LogPattern("killed by signal: Bus error", r"DataLoader worker \(.*\) is killed by signal: Bus error")
PROCESS = LogPattern(
    "SIGBUS", r"Signal 7 \(SIGBUS\)|\*\*\* SIGBUS received|(?:signal|died with|terminated by).{0,20}SIGBUS"
)
TORCHRUN = LogPattern("exitcode", r"\bexitcode *[:=] *-7\b")
DEEPSPEED = LogPattern("return code = -", r"exits with return code = -7\b")
SHELL = LogPattern(
    "us error", r"^Bus error( \(core dumped\))?\s*$|: line \d+: +\d+ Bus error\b|^Fatal Python error: Bus error"
)
_SIZE = r"\d{1,15}(?:\.\d{1,3})?[KMGT]?"
DF = LogPattern(
    "shm", rf"^\S+\s+(?P<size>{_SIZE})\s+(?P<used>{_SIZE})\s+(?P<free>{_SIZE})\s+\d+% +/dev/shm$", beside=True
)


class Sigbus(NamedTuple):
    """A death of SIGBUS: the line that shows it, and whether a DataLoader worker or some process died."""

    shown: Hit | str
    worker: bool
    process: bool


def sigbus(case: Case) -> Sigbus | None:
    """Return the death of SIGBUS that a log or an exit code tells, None without one."""
    worker = case.first(IN_WORKER, WORKER_KILLED)
    process = case.first(PROCESS, TORCHRUN, DEEPSPEED, SHELL)
    if worker is None and process is None and case.exit_code != EXIT_SIGBUS:
        return None
    shown = worker or process or "exit code 135, which is 128 + SIGBUS"
    return Sigbus(shown, worker is not None, process is not None)


def died_of(found: Sigbus) -> str:
    """Return who died, and how, as a clause."""
    who = "a DataLoader worker" if found.worker else "a process of the job" if found.process else "the job"
    return f"{who} {'died of SIGBUS' if found.worker or found.process else 'ended as by SIGBUS'}"


def was_half_full(case: Case) -> bool | None:
    """Return whether /dev/shm was seen half full, by who watched it or by `df` in the log; None where nobody looked."""
    evidence = case.evidence
    if evidence.shm_peak is not None and evidence.shm_size and evidence.private_shm:
        return 2 * evidence.shm_peak >= evidence.shm_size
    looked = case.first(DF)
    if looked is None:
        return None
    free, used = (bytes_of_df(looked.match[each]) for each in ("free", "used"))
    return None if free < ROOM and used < free else used >= free


def had_room(case: Case) -> bool:
    """Whether /dev/shm was seen with so much free that no ordinary batch fills it between two looks."""
    evidence = case.evidence
    if evidence.shm_peak is not None and evidence.private_shm and evidence.shm_size - evidence.shm_peak >= ROOM:
        return True
    looked = case.first(DF)
    return looked is not None and bytes_of_df(looked.match["free"]) >= ROOM


def bytes_of_df(text: str) -> int:
    """Return the bytes of a size as `df -h` writes it; a bare number counts KiB."""
    number, unit = (text, "K") if text[-1].isdigit() else (text[:-1], text[-1])
    return int(float(number) * 1024 ** ("BKMGT".index(unit)))


def most_seen(case: Case) -> str:
    """Return how full /dev/shm was seen, as the end of a sentence."""
    looked = case.first(DF)
    if case.evidence.shm_peak is not None and case.evidence.private_shm:
        held = human_size(case.evidence.shm_peak)
        return f"; {shm_place(case.evidence)} was seen with at most {held} in it"
    return f"; {looked.match['free']} are free in /dev/shm" if looked is not None else ""
