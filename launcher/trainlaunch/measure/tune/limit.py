"""What keeps the fastest setting from being faster: the step, CPUs, memory; said only where its figures agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trainlaunch.measure.tune.trial import Trial, TunedLoader
from trainlaunch.units import format_cpus, human_size

IDLE = 0.1  # of the loop's time: it hardly waits
FULL = 0.85  # of the CPUs
RUNNABLE = 0.5  # of the loop's process and its workers: they run, or only want for a CPU
BUSY_GPU = 50.0  # percent, from which on it is what the loop waits for
OFTEN_THROTTLED = 0.25  # of the quota's periods
LIMITS = {
    "gpu": "the GPU",
    "step": "the training step",
    "cpu": "the CPUs",
    "quota": "the CPU quota",
    "io": "input and output",
    "process": "the loop's own process",
    "memory": "memory",
    "shm_size": "shm_size",
    "max_workers": "max_workers",
}  # by the word that JSON has


class Limit(NamedTuple):
    """One of LIMITS, and the sentence that says why."""

    what: str
    why: str


def agreed_limit(timings: Sequence[Trial], loader: TunedLoader, *, at_the_end: str) -> Limit | None:
    """Return what all timings of the fastest setting say limits it, in the words of the first; None where they differ.

    `at_the_end` is what forbids more workers than it has, if something does.
    """
    found = [limit_of(each, loader, at_the_end=at_the_end) for each in timings]
    return found[0] if len({each and each.what for each in found}) == 1 else None


def limit_of(best: Trial, loader: TunedLoader, *, at_the_end: str) -> Limit | None:
    """Return what limits a setting by the figures of one timing; None where they don't tell."""
    waits = f"the loop waits for batches {percent(best.wait_share)} of the time"
    used = best.cpus_used
    busy = "" if used is None else f"{used:.2f} of {cpus_text(loader.cpus)} CPUs are busy"
    if best.wait_share < IDLE:
        told = "" if best.gpu_busy is None else f", and the GPU is busy {best.gpu_busy:.0f} %"
        if (best.gpu_busy or 0.0) >= BUSY_GPU:
            return Limit("gpu", f"{waits}{told}: more workers can't help")
        return Limit("step", f"{waits}{told}: the training step takes the rest{', on the CPU' * (not loader.cuda)}")
    if best.throttled_share is not None and best.throttled_share >= OFTEN_THROTTLED:
        quota = f"the CPU quota stops the job in {percent(best.throttled_share)} of its periods"
        return Limit("quota", f"{waits}, and {quota}; {busy or 'raise resources.cpus'}")
    if used is not None and used >= FULL * loader.cpus:
        return Limit("cpu", f"{waits}, and {busy}")
    queued = best.cpus_queued or 0.0
    if used is not None and queued > used and queued + used >= RUNNABLE * (1 + best.setting.num_workers):
        return Limit("cpu", f"{waits}, {busy}, and {queued:.1f} processes on average wait for one that others have")
    if at_the_end:
        fix = {
            "max_workers": "raise data_loader.max_workers",
            "shm_size": "raise shm_size, or leave it to auto",
            "memory": "raise resources.memory",
        }[at_the_end]
        return Limit(at_the_end, f"{waits}, and {at_the_end} allows no more workers; {fix}")
    return None if used is None else _of_processes(best, used, loader.cpus, f"{waits}, while only {busy}")


def _of_processes(best: Trial, used: float, cpus: float, idle: str) -> Limit | None:
    """Return the limit where CPUs are free: storage where processes stand still, else the one that all wait for."""
    workers = best.setting.num_workers
    own = used - (best.worker_cpus or 0.0)
    if used < RUNNABLE * min(workers or 1, cpus):
        read = best.read_per_second
        reading = "" if read is None else f"; {human_size(int(read))}/s are read"
        who = "workers wait" if workers else "it waits"
        return Limit("io", f"{idle}: {who} for storage, the network or a lock{reading}")
    if FULL <= own < 1 / FULL and (not workers or best.worker_cpus is not None):
        does = "takes the batches of its workers" if workers else "loads and trains by turns"
        return Limit("process", f"{idle}: one process {does}, and keeps one CPU busy")
    return None


def cpus_text(cpus: float) -> str:
    """Return CPUs as the job file writes them: 2, 1.5."""
    return format_cpus(round(cpus * 1000))


def percent(share: float) -> str:
    """Return a share as `31 %`."""
    return f"{100 * share:.0f} %"
