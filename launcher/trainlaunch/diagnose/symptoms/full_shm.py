"""A /dev/shm without room, and mapped files that look like it."""

from __future__ import annotations

import re

from trainlaunch.diagnose.base.bus_error import (
    IN_WORKER,
    WORKER_KILLED,
    died_of,
    had_room,
    most_seen,
    sigbus,
    was_half_full,
)
from trainlaunch.diagnose.base.case import CERTAIN, LIKELY, POSSIBLE, Case, EvidenceLine, Symptom, Told, seen
from trainlaunch.diagnose.base.container_snapshot import IDLE, ContainerSnapshot, Process, is_idle, waiting_mains
from trainlaunch.diagnose.base.log_patterns import LogPattern
from trainlaunch.diagnose.base.memory_advice import larger_shm, shm_commands, shm_place
from trainlaunch.units import GIB, counted, human_size

MAX_FULL = 0.97  # from which on the next batch may not fit
RESERVE = LogPattern("unable to allocate shared memory(shm)", r"\(shm\) for file <[^<>]*>: .*\((?:0|11|28)\)")
RESIZE = LogPattern("unable to resize file </", r"unable to resize file <[^<>]*>.*\((?:0|11|28)\)")
WRITE = LogPattern(
    "unable to write to file </torch_",
    r"unable to write to file </torch_[^<>]*>\s*$|unable to write to file </torch_[^<>]*>: .*\(28\)\s*$",
)
PATH = LogPattern(
    "o space left on device", r"/dev/shm/(?!nccl-)\S.*o space left on device|o space left on device.*/dev/shm/"
)
IN_TORCH = LogPattern("o space left on device", r"\[Errno 28\] No space left on device")
_SHARING = r"multiprocessing/(?:reductions|shared_memory)\.py|_share_(?:fd|filename)_cpu_|_posixshmem|share_memory"


def _shm_exhausted(case: Case) -> Told | None:
    """Match the texts of a failed reservation; other errno values (2, 12, 24) have other causes."""
    hit = case.first(RESERVE, RESIZE, WRITE, PATH) or case.first(IN_TORCH, within=_SHARING)
    if hit is None:
        return None
    told = "(28)" in hit.text or "o space left" in hit.text or "(" not in hit.text.rpartition(">")[2]
    stale = "" if told else "; the error that the line ends in is a stale number of torch's"
    return Told(
        f"{shm_place(case.evidence)} is full and had no room for more{stale}",
        seen(hit),
        larger_shm(case.evidence),
        commands=shm_commands(case.evidence),
    )


def _shm_exhausted_live(case: Case, look: ContainerSnapshot) -> Told | None:
    """Match a /dev/shm that is full now."""
    if look.shm is None or not look.shm.size or look.shm.used < MAX_FULL * look.shm.size:
        return None
    shown = EvidenceLine("machine", 0, f"/dev/shm holds {human_size(look.shm.used)} of {human_size(look.shm.size)}")
    fix = larger_shm(case.evidence)
    return Told(
        "/dev/shm is full: the next batch has no room, unless a worker frees one first",
        (shown,),
        fix,
        POSSIBLE,
        shm_commands(case.evidence),
    )


_SHM_EXHAUSTED_SEMAPHORE_ENOSPC = LogPattern("o space left on device", r"\[Errno 28\] No space left on device\s*$")


def _shm_exhausted_semaphore(case: Case) -> Told | None:
    """Match ENOSPC within a traceback through SemLock: beside one, it is another error's."""
    hit = case.first(_SHM_EXHAUSTED_SEMAPHORE_ENOSPC, within=r"SemLock|synchronize\.py")
    if hit is None:
        return None
    return Told(
        f"{shm_place(case.evidence)} has no room left for a semaphore; no disk is full",
        seen(hit),
        larger_shm(case.evidence),
        commands=shm_commands(case.evidence),
    )


def _shm_exhausted_bus_error(case: Case) -> Told | None:
    """Match torch's and torchrun's texts, and exit code 135, unless /dev/shm had room."""
    found = sigbus(case)
    if found is None or had_room(case):
        return None
    filled = was_half_full(case)
    sure = filled or (filled is None and found.worker)
    page = f"{shm_place(case.evidence)} had no page left for it"
    doubt = f"a page of mapped memory could not be had, in {shm_place(case.evidence)} most likely{most_seen(case)}"
    fix = larger_shm(case.evidence)
    if not found.worker:
        fix += "; where it stays, look for a memory-mapped file that was cut short or lies on a full disk"
    return Told(
        f"{died_of(found)}: {page if sure else doubt}",
        seen(found.shown),
        fix,
        CERTAIN if sure else LIKELY,
        shm_commands(case.evidence),
    )


FULL = 0.97  # of /dev/shm
HANDED_OVER = 0.05  # seconds in which a batch gets from a worker to the main process
HALF_FULL = 0.5  # what a lost batch leaves: those after it wait for it in /dev/shm
FEED = r"queues\.py.*\b_feed\b"
_DIED = LogPattern("DataLoader worker", r"DataLoader worker \(.*\) (?:is killed by signal|exited unexpectedly)")


def _shm_exhausted_hang(case: Case) -> Told | None:
    """Match the feeder thread's traceback with a full /dev/shm at its end, where no worker died beside it."""
    hit = case.first(RESERVE, RESIZE, WRITE, IN_TORCH, within=FEED)
    if hit is None or case.first(_DIED, IN_WORKER, WORKER_KILLED) is not None:
        return None
    hung = "the run is hung and will not end by itself" if case.exit_code is None else "the job then waited for it"
    first = "end the run, then " if case.exit_code is None else ""
    return Told(
        f"{shm_place(case.evidence)} is full, and a DataLoader worker lost a batch: {hung}",
        seen(hit),
        f"{first}{larger_shm(case.evidence)}; data_loader.timeout makes it an error",
        commands=shm_commands(case.evidence),
    )


def _shm_exhausted_hang_live(case: Case, look: ContainerSnapshot) -> Told | None:
    """Match a job that waits for a batch while its workers have nothing to do, and /dev/shm is full of the others."""
    if look.shm is None or not look.shm.size or look.shm.used < HALF_FULL * look.shm.size:
        return None
    for main in waiting_mains(look):
        workers = look.workers_of(main)
        if not all(is_idle(each) for each in workers) or not all(_rests(each) for each in (main, *workers)):
            continue
        full = look.shm.used >= FULL * look.shm.size
        shown = EvidenceLine(
            "machine",
            0,
            f"waiting for work: {counted(len(workers), 'worker')}, all; process {main.pid} waits for a batch",
        )
        return Told(
            f"{shm_place(case.evidence)} has no room for one more batch: the job waits for one that was lost",
            (shown,),
            f"end the run, then {larger_shm(case.evidence)}; data_loader.timeout makes it an error",
            LIKELY if full or main.stack else POSSIBLE,
        )
    return None


def _rests(process: Process) -> bool:
    return (process.cpu or 0) < IDLE and (process.asleep is None or process.asleep >= HANDED_OVER)


_SHORT = LogPattern("rror: mmap length is greater than file size")
_PARTS = LogPattern(
    "rror", r"SafetensorError: .*(?:incomplete metadata|MetadataIncompleteBuffer|InvalidHeader|header too)"
)
_ZIP = LogPattern("rror", r"PytorchStreamReader failed (?:reading|locating) .*central directory")
_LINE = 'set env: {PYTHONFAULTHANDLER: "1"} for the line that touched it'


def _truncated_mmap(case: Case) -> Told | None:
    """Match readers' own texts, and a SIGBUS where /dev/shm was seen with room."""
    hit = case.first(_SHORT, _PARTS, _ZIP)
    if hit is not None:
        return Told(
            "a file that is read has fewer bytes than it should: it was cut short, or is still being written",
            seen(hit),
            "compare its size with its source's, and copy it again",
        )
    found = sigbus(case)
    if found is None or not had_room(case):
        return None
    return Told(
        f"{died_of(found)}: a page of a mapped file could not be had{most_seen(case)}",
        seen(found.shown),
        f"{_LINE}: a file cut short, or on a full disk; otherwise {larger_shm(case.evidence)}",
        LIKELY,
    )


_CREATE = LogPattern(
    "/dev/shm/nccl-", r"Error while creating shared memory segment /dev/shm/nccl-\S* \(size [1-9]\d*\)"
)
_EXTEND = LogPattern("/dev/shm/nccl-", r"(?i)failed to extend /dev/shm/nccl-\S* to \d+ bytes")
_NCCL_SHM_ENOSPC = LogPattern("/dev/shm/nccl-", r"/dev/shm/nccl-.*No space left on device")
_CALL = LogPattern("NCCL", r"Call to (?:posix_fallocate|fallocate|ftruncate) failed.*No space left")
_OTHER_ERRNO = r"error: (?!No space left)(?:(?!error: ).)+\(\d+\)|Permission denied|Too many open files|No such file"


def _nccl_shm(case: Case) -> Told | None:
    """Match the lines of creating and extending a segment, with ENOSPC or no errno."""
    told = case.first(_NCCL_SHM_ENOSPC, _CALL)
    silent = [each for each in case.hits(_CREATE, _EXTEND) if told is not None or not _has_other(each.text)]
    hit = told or (silent[0] if silent else None)
    if hit is None:
        return None
    evidence = case.evidence
    large = evidence.private_shm and evidence.shm_size >= GIB
    if told is None and large:
        fix = "run once with env: {NCCL_DEBUG: WARN}: CUDA's failure to map a segment ends in the same line"
        return Told(
            f"NCCL could not make a segment, though /dev/shm has {human_size(evidence.shm_size)}",
            seen(hit),
            f"{fix}; if it is full, {larger_shm(evidence)}",
            LIKELY,
        )
    sure = CERTAIN if told is not None or (evidence.private_shm and evidence.shm_size) else LIKELY
    return Told(
        f"{shm_place(evidence)} has no room for NCCL's buffers between the ranks",
        seen(hit),
        larger_shm(evidence),
        sure,
        shm_commands(evidence),
    )


def _has_other(line: str) -> bool:
    return re.search(_OTHER_ERRNO, line) is not None


SYMPTOMS = (
    Symptom("TL605", "shm-exhausted", _shm_exhausted, _shm_exhausted_live),
    Symptom("TL604", "shm-exhausted-semaphore", _shm_exhausted_semaphore),
    Symptom("TL606", "shm-exhausted-bus-error", _shm_exhausted_bus_error),
    Symptom("TL603", "shm-exhausted-hang", _shm_exhausted_hang, _shm_exhausted_hang_live),
    Symptom("TL627", "truncated-mmap", _truncated_mmap),
    Symptom("TL634", "nccl-shm", _nccl_shm),
)
