"""The plan's word on what Python of ours runs inside the job's own processes."""

from __future__ import annotations

from typing import NamedTuple

from trainlaunch.job.loader_spec import LoaderSpec
from trainlaunch.job.spec import JobSpec

HEARTBEAT, WORKERS, DATA_WAIT, PROBE, TUNE = "heartbeat", "workers", "data_wait", "probe", "tune"
INJECTED = "num_workers"  # the word of data_loader.inject that asks for WORKERS
OVERRIDING = "force"  # likewise, and for what a script sets itself too
SETTING = "TRAINLAUNCH_WORKERS"  # has the job's loaders for WORKERS, as JSON
FORCED = "TRAINLAUNCH_FORCE_WORKERS"  # 1: numbers that the script sets are overridden
LOOK_SECONDS = 5  # between two looks of `up` at what a health check said
PAGES = 20  # of /dev/shm that the files of a job's own parts take at most, those of the health check among them


class Instrumentation(NamedTuple):
    """What the wrapper delivers: `parts` are modules or packages of trainlaunch.inside, installed in this order.

    `settings` are variables (NAME, value) that the parts read. Without parts nothing is delivered.
    """

    parts: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    def with_part(self, part: str, *settings: tuple[str, str]) -> Instrumentation:
        """Return it with one more part and its variables."""
        return Instrumentation((*self.parts, part), (*self.settings, *settings))


def instrumentation_of(job: JobSpec) -> Instrumentation:
    """Return what the job itself asks for."""
    made = Instrumentation()
    if job.healthcheck.stall_after is not None:
        made = made.with_part(HEARTBEAT)
    if job.data_loader.inject in {INJECTED, OVERRIDING}:
        import json  # few jobs ask for it

        moved = 0 if job.data_loader.multiprocessing_context == "fork" else job.data_loader.dataset_tensor_bytes
        tensors: dict[str, int | str | None] = {"tensors": moved} if moved else {}
        loaders = [_planned(each) | tensors for each in job.data_loader.loaders]
        forced = ((FORCED, "1"),) if job.data_loader.inject == OVERRIDING else ()
        made = made.with_part(WORKERS, (SETTING, json.dumps(loaders)), *forced)
    return made.with_part(DATA_WAIT) if job.observe else made


def latest_stall(job: JobSpec) -> int:
    """Return the seconds after its last batch by which a rank that waits for the next is told, or its job stopped.

    An engine's check says it once and `up` hears it; a kubelet waits for as many checks as may fail.
    """
    check = job.healthcheck
    looks = check.interval + LOOK_SECONDS
    if job.kind is not None:
        looks = check.retries * (liveness_period(job) if check.stops else check.interval)
    return (check.stall_after or 0) + looks


def liveness_period(job: JobSpec) -> int:
    """Return the seconds between two checks of a kubelet that stops a job.

    As many as may fail fit into one interval, unless they are more than its seconds: a kubelet asks once a second at
    most. It counts a check that says something like one that doesn't end in time.
    """
    return max(1, job.healthcheck.interval // job.healthcheck.retries)


def forbids_noting(job: JobSpec) -> str:
    """Return the field by which a job forbids that its processes note how long they wait for data, else ``."""
    if job.data_loader.inject == "off":
        return "data_loader.inject: off"
    return "observe: false" if job.observe is False else ""


def _planned(loader: LoaderSpec) -> dict[str, int | str | None]:
    """Return what WORKERS is told of a loader: none, and why, where a probe found what workers would bring out."""
    told: dict[str, int | str | None] = {"batch_size": loader.batch_size, "num_workers": loader.num_workers}
    if loader.against_workers:
        told |= {"num_workers": 0, "why": f"probe found {', '.join(loader.against_workers)}"}
    return told
