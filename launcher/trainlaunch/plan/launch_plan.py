"""The LaunchPlan: every number of a launch, decided once, each with its derivation and origin.

Renderers and runners only spell what stands here.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from trainlaunch.job.spec import Gpus, JobSpec
from trainlaunch.plan.instrumentation import Instrumentation
from trainlaunch.targets import Target, target_record

Made = TypeVar("Made")


class Derived(NamedTuple):
    """A decided number, the sum that gave it, and where its inputs came from."""

    value: int
    derivation: str
    origin: str


class LoaderNeed(NamedTuple):
    """What one loader of one rank puts in /dev/shm. Bytes, except `workers` and what counts batches.

    `unit` is one batch rounded to pages (U), `largest` its largest storage (M). `need` and `worst_case` are those of a
    container with this loader alone.
    """

    name: str
    workers: int
    auto: bool
    prefetch_factor: int
    batches_held: int
    batches_kept: int
    persistent: bool
    unit: int
    largest: int
    tensors: int
    need: int
    worst_case: int


class LinearBytes(NamedTuple):
    """Bytes as a function of the automatic number of workers W > 0: per_worker·W + constant."""

    per_worker: int
    constant: int


class SharedMemory(NamedTuple):
    """/dev/shm of one container, in bytes; `need` ≤ `multi_epoch` ≤ `worst_case`.

    `need` is the law for the planned workers in one epoch, `multi_epoch` for several: forked workers inherit what the
    loops still hold. `worst_case` adds rare overruns, larger pages and NCCL; `size` is what all rendered files set.
    For W > 0 auto workers `need` is the largest of `first_epoch`, `multi_epoch` that of `every_epoch`; for W = 0 both
    are `without_workers`. `in_turn`: each loop ends before the next starts.
    `minimum` is the smallest size that the preflight accepts: `need`, or `size` where no sample was given and
    the target makes /dev/shm; target local takes the host's as it is.
    """

    need: int
    multi_epoch: int
    worst_case: int
    size: Derived
    minimum: int
    unsized: bool
    first_epoch: tuple[LinearBytes, ...]
    every_epoch: tuple[LinearBytes, ...]
    without_workers: int
    in_turn: bool
    loaders: tuple[LoaderNeed, ...]

    @property
    def workers(self) -> int:
        """Worker processes of one rank that are alive at once."""
        return self.alive_workers(None)

    def alive_workers(self, auto: int | None) -> int:
        """Return the workers of one rank that are alive at once; `auto` replaces automatic numbers.

        In turn they are those of the loader that runs, and the persistent ones of all others.
        """
        counts = [(auto if each.auto and auto is not None else each.workers, each.persistent) for each in self.loaders]
        staying = sum(count for count, persistent in counts if persistent or not self.in_turn)
        passing = [count for count, persistent in counts if self.in_turn and not persistent]
        return staying + max(passing, default=0)

    @property
    def most_workers(self) -> int:
        """Workers of the loader that has most."""
        return max((each.workers for each in self.loaders), default=0)


class MemoryBudget(NamedTuple):
    """The container's memory limit (None: none) and the estimated memory of its processes, in bytes."""

    limit: int | None
    working_set: Derived


class LaunchPlan(NamedTuple):
    """Everything that a target needs to start the job.

    `name_fixed`: the user chose `name` for this launch (`--name`), so no target adds a suffix to it.
    `measures` is the job whose script a run of `probe` or `tune` measures, else empty.
    `by_run`: a command's, so what is told names options of `run` and no field of a job file.
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
    memory: MemoryBudget
    open_files: int
    argv: tuple[str, ...]
    name_fixed: bool
    inside: Instrumentation = Instrumentation()
    measures: str = ""
    by_run: bool = False

    @property
    def target_record(self) -> Target:
        """What is so of its target."""
        return target_record(self.target)

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
        """DataLoader workers of all ranks of a container that are alive at once."""
        return self.shm.workers * self.ranks.value

    @property
    def stated_processes(self) -> int:
        """Workers of all ranks of the loader with the largest num_workers that is set; 0 where none is."""
        return self.ranks.value * max((each.num_workers or 0 for each in self.job.data_loader.loaders), default=0)

    @property
    def queued_batches(self) -> int:
        """Batches that the workers which run in a container hold ready: workers × prefetch_factor of all ranks.

        Of an unsized plan only the loaders count whose batches are unknown: what is measured is shared out among them.
        """
        specs = self.job.data_loader.loaders
        queued = [
            each.workers * each.prefetch_factor
            for each, spec in zip(self.shm.loaders, specs, strict=True)
            if not self.shm.unsized or spec.unsized
        ]
        return (max(queued, default=0) if self.shm.in_turn else sum(queued)) * self.ranks.value


def cache_last_plan(work: Callable[[LaunchPlan], Made]) -> Callable[[LaunchPlan], Made]:
    """Return `work`, done once for a plan until another one is asked about.

    For functions of the plan alone, whose result nobody changes: a plan is never changed either.
    """
    last: tuple[LaunchPlan, Made] | None = None

    @functools.wraps(work)
    def once(plan: LaunchPlan) -> Made:
        nonlocal last
        known = last
        if known is None or known[0] is not plan:
            known = last = plan, work(plan)
        return known[1]

    return once
