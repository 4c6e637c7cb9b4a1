"""The plan's word on what Python of ours runs inside the job's own processes."""

from __future__ import annotations

from typing import NamedTuple

from launcher.job.spec import JobSpec

HEARTBEAT, WORKERS, PROBE, TUNE = "heartbeat", "workers", "probe", "tune"
PAGES = 16  # of /dev/shm that the files of a job's own parts take at most, those of the health check among them


class Inside(NamedTuple):
    """What the wrapper delivers: `parts` are modules or packages of launcher.inside, installed in this order.

    `settings` are variables (NAME, value) that the parts read. Without parts nothing is delivered.
    """

    parts: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    def with_part(self, part: str, *settings: tuple[str, str]) -> Inside:
        """Return it with one more part and its variables."""
        return Inside((*self.parts, part), (*self.settings, *settings))


def inside_of(job: JobSpec) -> Inside:
    """Return what the job itself asks for."""
    return Inside((HEARTBEAT,) if job.healthcheck.stall_after is not None else ())
