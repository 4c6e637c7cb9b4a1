"""Who else takes /dev/shm, as a job names it: sizes that it sets, and those that follow from an owner's own law."""

from __future__ import annotations

from typing import NamedTuple

from trainlaunch.job.command_script import job_commands
from trainlaunch.job.shm_owners import Surroundings, as_started, law_of
from trainlaunch.job.spec import JobSpec, ShmExtra
from trainlaunch.units import human_size


class ShmOwner(NamedTuple):
    """Another owner of /dev/shm, its bytes, and how they are counted: empty where the job sets them.

    `needed`: it fails, or is slow, with fewer; else it seldom takes so many.
    """

    name: str
    size: int
    derivation: str = ""
    needed: bool = True

    def __str__(self) -> str:
        """Return it as a part of a sum."""
        return f"{self.name} {human_size(self.size)}" + f" = {self.derivation}" * bool(self.derivation)


def shm_owners(job: JobSpec, ranks: int) -> tuple[ShmOwner, ...]:
    """Return the owners that shm_extra names, those without a size by their own law."""
    return tuple(_owner(job, each, ranks) for each in job.shm_extra)


def surroundings(job: JobSpec, ranks: int) -> Surroundings:
    """Return what the laws ask of a job."""
    resources = job.resources
    gpus = resources.gpus.count if resources.gpus else 0
    commands = tuple(as_started(job.image, each) for each in job_commands(job))
    return Surroundings(commands, job.env, resources.memory, gpus, ranks, job.nodes)


def _owner(job: JobSpec, owner: ShmExtra, ranks: int) -> ShmOwner:
    if owner.size is not None:
        return ShmOwner(owner.name, owner.size)
    law = law_of(owner.name, surroundings(job, ranks))
    return ShmOwner(owner.name, 0) if law is None else ShmOwner(owner.name, *law)
