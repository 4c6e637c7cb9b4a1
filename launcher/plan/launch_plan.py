"""The LaunchPlan: every number of a launch, decided once, each with its derivation and origin.

Renderers and runners only spell what stands here.
"""

from __future__ import annotations

from typing import NamedTuple

from launcher.job.spec import Gpus, JobSpec
from launcher.targets import TARGETS, Target


class Derived(NamedTuple):
    """A decided number, the sum that gave it, and where its inputs came from."""

    value: int
    derivation: str
    origin: str


class LoaderNeed(NamedTuple):
    """What one loader of one rank puts in /dev/shm. Bytes, except `workers`, `prefetch_factor` and `batches_held`.

    `unit` is one batch rounded to pages (U), `largest` its largest storage (M).
    """

    name: str
    workers: int
    auto: bool
    prefetch_factor: int
    batches_held: int
    unit: int
    largest: int
    tensors: int
    need: int
    worst_case: int


class SharedMemory(NamedTuple):
    """/dev/shm of one container, in bytes.

    `need` is the law for the planned workers in one epoch, `multi_epoch` for several: forked workers inherit the batch
    that the loop still holds. `worst_case` adds rare overruns and NCCL to need, `size` is what all renderings state.
    For W > 0 auto workers a container needs per_worker·W + fixed bytes; for W = 0 it needs `without_workers`.
    `minimum` is the smallest size that the preflight accepts: `need`, or `size` where no sample was given and
    the target makes /dev/shm; target local takes the host's as it is.
    """

    need: int
    multi_epoch: int
    worst_case: int
    size: Derived
    minimum: int
    unsized: bool
    per_worker: int
    fixed: int
    without_workers: int
    loaders: tuple[LoaderNeed, ...]

    @property
    def workers(self) -> int:
        """Worker processes of one rank, of all its loaders."""
        return sum(each.workers for each in self.loaders)

    @property
    def most_workers(self) -> int:
        """Workers of the loader that has most."""
        return max((each.workers for each in self.loaders), default=0)


class Memory(NamedTuple):
    """The container's memory limit (None: none) and the estimated working set of its processes, in bytes."""

    limit: int | None
    working_set: Derived


class LaunchPlan(NamedTuple):
    """Everything that a target needs to start the job.

    `name_fixed`: the user chose `name` for this launch (`--name`), so no target adds a suffix to it.
    `forced`: `--force` was given.
    """

    job: JobSpec
    target: str
    name: str
    gpus: Gpus
    ranks: Derived
    num_workers: Derived
    auto_workers: bool
    threads: tuple[tuple[str, Derived], ...]
    shm: SharedMemory
    memory: Memory
    open_files: int
    argv: tuple[str, ...]
    name_fixed: bool
    forced: bool = False

    @property
    def target_record(self) -> Target:
        """What is so of its target."""
        return TARGETS[self.target]

    @property
    def nodes(self) -> int:
        """How many containers run the job, each with all numbers of this plan."""
        return self.job.nodes

    @property
    def stable_name(self) -> bool:
        """Whether no target adds a suffix to the name: the job or this launch fixes it."""
        return self.name_fixed or self.job.kubernetes.stable_name

    @property
    def processes(self) -> int:
        """DataLoader workers of all ranks of a container."""
        return self.shm.workers * self.ranks.value

    @property
    def stated_processes(self) -> int:
        """Workers of all ranks of the loader whose stated num_workers is largest; 0 where none is stated."""
        return self.ranks.value * max((each.num_workers or 0 for each in self.job.data_loader.loaders), default=0)

    @property
    def queued_batches(self) -> int:
        """Batches that the workers of all ranks of a container hold ready: Σ workers × prefetch_factor."""
        return sum(each.workers * each.prefetch_factor for each in self.shm.loaders) * self.ranks.value
