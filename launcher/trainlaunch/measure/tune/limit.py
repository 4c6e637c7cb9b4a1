"""What keeps the chosen setting from being faster: the step itself, the CPUs, the quota, reading, memory."""

from __future__ import annotations

from typing import NamedTuple

from trainlaunch.measure.tune.trial import Trial, TunedLoader
from trainlaunch.units import format_cpus, human_size

IDLE = 0.1  # of the loop's time: it hardly waits
FULL = 0.85  # of the CPUs
RUNNABLE = 0.5  # of the loop's process and its workers: they run, or only want for a CPU
OFTEN_THROTTLED = 0.25  # of the quota's periods
LIMITS = {
    "gpu": "the GPU",
    "step": "the training step",
    "cpu": "the CPUs",
    "quota": "the CPU quota",
    "io": "input and output",
    "memory": "memory",
    "shm_size": "shm_size",
    "max_workers": "max_workers",
}  # by the word that JSON has


class Limit(NamedTuple):
    """One of LIMITS, and the sentence that says why."""

    what: str
    why: str


def limit_of(best: Trial, loader: TunedLoader, *, at_the_end: str) -> Limit:
    """Return what limits the fastest setting; `at_the_end` is what forbids more workers than it has, if it does."""
    waits = f"the loop waits for batches {percent(best.wait_share)} of the time"
    used = best.cpus_used
    busy = "" if used is None else f"{used:.2f} of {cpus_text(loader.cpus)} CPUs are busy"
    if best.wait_share < IDLE:
        if loader.cuda:
            told = "" if best.gpu_busy is None else f", and the GPU is busy {best.gpu_busy:.0f} %"
            return Limit("gpu", f"{waits}{told}: more workers can't help")
        return Limit("step", f"{waits}: the training step takes the rest, on the CPU")
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
    read = best.read_per_second
    reading = "" if read is None else f"; they read {human_size(int(read))}/s"
    idle = f"{waits}, while only {busy}" if busy else waits
    return Limit("io", f"{idle}: workers wait for storage, the network or a lock{reading}")


def cpus_text(cpus: float) -> str:
    """Return CPUs as the job file writes them: 2, 1.5."""
    return format_cpus(round(cpus * 1000))


def percent(share: float) -> str:
    """Return a share as `31 %`."""
    return f"{100 * share:.0f} %"
