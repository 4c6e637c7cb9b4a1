"""The law of /dev/shm: what the DataLoaders of a container need, and the size that every rendered file sets.

Per loader with W > 0 workers, prefetch P, page G (measured in real containers, tight to the page; see docs/sizing.md):

    D = (W·P + batches_held)·U                               U: one batch in pages
    s = (3·W + 8)·G                                          semaphores
    r = batches_held − 1, or as measured                     batches that a loop still holds when it ends

together: need = Σ (D + s)                                   any loader may be alive with any other
    multi_epoch = need + Σ (r·U + s)                         fork: workers of a later epoch inherit what the loop holds
in turn: need = max (D + s), a persistent loader's s always  each loop ends before the next starts
    multi_epoch = max (D + s) + c·Σ r·U + Σ s                fork; c = 2 with persistent workers, else 1
    multi_epoch = max (D + s + Σ of the others' r·U) + Σ s   otherwise: nothing is inherited, and still held

    worst_case = multi_epoch with G = 64 KiB + W·M + NCCL    M: its largest storage; W·M as sum or as maximum
    container = ranks × (the above + dataset tensors under spawn and forkserver) + shm_extra + 16 G for files of ours
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from trainlaunch.job.loader_spec import DataLoaderSpec, LoaderSpec
from trainlaunch.job.shm_owners import NCCL, NCCL_BETWEEN_NODES, NCCL_ON_ONE_NODE
from trainlaunch.job.spec import JobSpec, Origin
from trainlaunch.least_shm import LEAST_SHM
from trainlaunch.plan.batch import batch_pages
from trainlaunch.plan.instrumentation import PAGES, instrumentation_of
from trainlaunch.plan.launch_plan import Derived, LinearBytes, LoaderNeed, SharedMemory
from trainlaunch.plan.shm_extra import shm_owners
from trainlaunch.units import GIB, KIB, MIB, format_size, human_size, round_up

PAGE = 4 * KIB
LARGEST_PAGE = 64 * KIB  # Grace hosts
SEMAPHORES_PER_WORKER = 3  # index queue, its lock and its event; each one page
SEMAPHORES_PER_LOADER = 8  # result queue and the loader's own events
FLOOR = 2 * GIB
UNSIZED_WITHOUT_LIMIT = 8 * GIB
WHEN_FULL = "a full /dev/shm ends in 'Bus error' or 'No space left on device', or the training loop waits for ever"
IN_TURN = "in_turn"


class WorkerNumbers(NamedTuple):
    """The number of workers of each loader: its own where set, else the common automatic one."""

    auto: int

    def of(self, loader: LoaderSpec) -> int:
        """Return the workers of one loader."""
        return self.auto if loader.num_workers is None else loader.num_workers


class _Part(NamedTuple):
    """What one loader with workers puts into /dev/shm, in bytes.

    `batches` D, `semaphores` s, `kept` r·U, `late` W·M: one storage a worker, let go of late.
    """

    batches: int
    semaphores: int
    kept: int
    late: int
    persistent: bool


_Parts = tuple[_Part, ...]  # of those loaders that have workers
# Bytes of one rank: the largest of these counts. Each is linear in the automatic number of workers.
_Law = Callable[[_Parts, DataLoaderSpec], tuple[int, ...]]


def shared_memory(job: JobSpec, ranks: int, workers: WorkerNumbers) -> SharedMemory:
    """Return /dev/shm of one container for these workers; checks nothing."""
    spec = job.data_loader
    parts, one, two = (_parts(job, each, PAGE) for each in (workers, WorkerNumbers(1), WorkerNumbers(2)))
    need, multi_epoch = (max(_terms(job, ranks, parts, law)) for law in (_first_epoch, _every_epoch))
    worst_case = _worst_case(job, ranks, workers)
    unsized = any(each.unsized for each in spec.loaders)
    bounds = _Bounds(need, multi_epoch, worst_case)
    size = _under_ceiling(job, _size(job, bounds, ranks, unsized=unsized))
    return SharedMemory(
        need=need,
        multi_epoch=multi_epoch,
        worst_case=worst_case,
        size=size,
        minimum=size.value if unsized and job.target_record.private_shm else need,
        unsized=unsized,
        first_epoch=_lines(job, ranks, (one, two), _first_epoch),
        every_epoch=_lines(job, ranks, (one, two), _every_epoch),
        without_workers=container_need(job, ranks, WorkerNumbers(0)),
        in_turn=spec.loaders_run == IN_TURN,
        loaders=tuple(_loader_need(job, each, workers.of(each)) for each in spec.loaders),
    )


def container_need(job: JobSpec, ranks: int, workers: WorkerNumbers) -> int:
    """Return the bytes that exactly suffice for one epoch: of a plain loader one page less fails."""
    return max(_terms(job, ranks, _parts(job, workers, PAGE), _first_epoch))


def size_for_all_epochs(job: JobSpec, ranks: int, workers: WorkerNumbers) -> int:
    """Return the bytes that a fixed size must have for these workers: multi-epoch peak and NCCL."""
    return max(_terms(job, ranks, _parts(job, workers, PAGE), _every_epoch)) + ranks * nccl_of_a_rank(job, ranks)


def nccl_of_a_rank(job: JobSpec, ranks: int) -> int:
    """Return NCCL's estimated bytes in /dev/shm; 0 without GPUs, for a rank that talks to nobody, and where set."""
    if not job.resources.gpus or any(each.name == NCCL for each in job.shm_extra):
        return 0
    return (ranks > 1) * NCCL_ON_ONE_NODE + (job.nodes > 1) * NCCL_BETWEEN_NODES


def _terms(job: JobSpec, ranks: int, parts: _Parts, law: _Law, page: int = PAGE) -> tuple[int, ...]:
    """Return the bytes of a container that `law` compares; the largest counts."""
    spec = job.data_loader
    pickled = 0
    if parts and spec.multiprocessing_context != "fork":
        pickled = round_up(spec.dataset_tensor_bytes, page)
    extra = sum(round_up(each.size, page) for each in shm_owners(job, ranks) if each.needed) + own_bytes(job, page)
    return tuple(ranks * (term + pickled) + extra for term in law(parts, spec) or (0,))


def own_bytes(job: JobSpec, page: int = PAGE) -> int:
    """Return what the wrapper's own files take in /dev/shm; 0 where nothing is delivered."""
    return PAGES * page if instrumentation_of(job).parts else 0


def _lines(job: JobSpec, ranks: int, parts: tuple[_Parts, _Parts], law: _Law) -> tuple[LinearBytes, ...]:
    """Return those bytes as functions of the automatic number of workers, from the parts of one and of two."""
    one, two = (_terms(job, ranks, each, law) for each in parts)
    return tuple(LinearBytes(second - first, 2 * first - second) for first, second in zip(one, two, strict=True))


def _first_epoch(parts: _Parts, spec: DataLoaderSpec) -> tuple[int, ...]:
    """Return need: the sum of all loaders together; in turn each beside the semaphores of the persistent others."""
    if spec.loaders_run != IN_TURN:
        return (sum(each.batches + each.semaphores for each in parts),)
    staying = sum(each.semaphores for each in parts if each.persistent)
    return tuple(each.batches + staying + each.semaphores * (not each.persistent) for each in parts)


def _every_epoch(parts: _Parts, spec: DataLoaderSpec) -> tuple[int, ...]:
    """Return the multi-epoch peak.

    Measured: what a loop holds when it ends, the workers that are forked next inherit, and keep it mapped after the
    loop has let go of it; in turn those of the other loaders too, and persistent ones beside what is held by then.
    """
    forked = spec.multiprocessing_context == "fork"
    kept, semaphores = sum(each.kept for each in parts), sum(each.semaphores for each in parts)
    if spec.loaders_run != IN_TURN:
        (need,) = _first_epoch(parts, spec)
        return (need + forked * (kept + semaphores),)
    copies = 2 if any(each.persistent for each in parts) else 1
    return tuple(
        each.batches + each.semaphores + semaphores + (copies * kept if forked else kept - each.kept) for each in parts
    )


def _parts(job: JobSpec, workers: WorkerNumbers, page: int) -> _Parts:
    """Return what each loader with workers puts into /dev/shm on a host with such pages."""
    return tuple(_part(job, each, workers.of(each), page) for each in job.data_loader.loaders if workers.of(each))


def _part(job: JobSpec, loader: LoaderSpec, workers: int, page: int) -> _Part:
    pages = batch_pages(loader, page, file_system=job.data_loader.sharing_strategy == "file_system")
    return _Part(
        batches=(workers * loader.prefetch_factor + loader.batches_held) * pages.unit,
        semaphores=semaphores(workers) * page,
        kept=loader.kept * pages.unit,
        late=workers * pages.largest,
        persistent=loader.persistent_workers,
    )


def semaphores(workers: int) -> int:
    """Return the semaphores of a loader with workers; each is a file of one page."""
    return SEMAPHORES_PER_WORKER * workers + SEMAPHORES_PER_LOADER


def _loader_need(job: JobSpec, loader: LoaderSpec, workers: int) -> LoaderNeed:
    spec = job.data_loader
    pages = batch_pages(loader, PAGE, file_system=spec.sharing_strategy == "file_system")
    small, large = ((_part(job, loader, workers, page),) if workers else () for page in (PAGE, LARGEST_PAGE))
    return LoaderNeed(
        name=loader.name,
        workers=workers,
        auto=loader.num_workers is None,
        prefetch_factor=loader.prefetch_factor,
        batches_held=loader.batches_held,
        batches_kept=loader.kept,
        persistent=loader.persistent_workers,
        unit=pages.unit,
        largest=pages.largest,
        tensors=pages.tensors,
        need=max(_first_epoch(small, spec), default=0),
        worst_case=max(_every_epoch(large, spec), default=0) + sum(each.late for each in large),
    )


def _worst_case(job: JobSpec, ranks: int, workers: WorkerNumbers) -> int:
    parts = _parts(job, workers, LARGEST_PAGE)
    late = [each.late for each in parts]
    at_once = max(late, default=0) if job.data_loader.loaders_run == IN_TURN else sum(late)
    multi_epoch = max(_terms(job, ranks, parts, _every_epoch, LARGEST_PAGE))
    seldom = sum(each.size for each in shm_owners(job, ranks) if not each.needed)
    return multi_epoch + ranks * (at_once + nccl_of_a_rank(job, ranks)) + seldom


class _Bounds(NamedTuple):
    need: int
    multi_epoch: int
    worst_case: int


def _size_without_loaders(job: JobSpec, ranks: int, needed: int) -> Derived:
    """Return what else is in /dev/shm, at least what every engine gives."""
    owners = shm_owners(job, ranks)
    others = ["NCCL"] * (needed > sum(each.size for each in owners)) + ["shm_extra"] * bool(owners)
    told = f"{' + '.join(others)} {human_size(needed)}" if others else "nothing else is known to use it"
    told += "".join(f"; {each}" for each in owners if each.derivation)
    size = round_up(max(LEAST_SHM, needed), MIB)
    return Derived(size, f"data_loader is none; max(64 MiB, {told})", str(job.origin("data_loader")))


def _size(job: JobSpec, bounds: _Bounds, ranks: int, *, unsized: bool) -> Derived:
    """Return the size that every rendered file sets: the job's own, or the automatic one rounded up to MiB.

    `unsized`: no sample says what a batch takes.
    """
    if job.shm_size is not None:
        return Derived(job.shm_size, "set", str(job.origin("shm_size")))
    if not job.data_loader.loaders:
        return _size_without_loaders(job, ranks, bounds.worst_case)
    memory = job.resources.memory
    origin = str(job.origin("resources.memory")) if memory else "default"
    if unsized:
        cap = memory // 2 if memory else UNSIZED_WITHOUT_LIMIT
        return Derived(
            round_up(max(cap, bounds.multi_epoch, LEAST_SHM), MIB),
            f"unsized (no sample): {'half of resources.memory' if memory else human_size(cap) + ', no memory limit'}",
            origin,
        )
    floor = max(LEAST_SHM, min(FLOOR, memory // 2) if memory else FLOOR)
    tight = memory is not None and bounds.worst_case > memory // 2
    wanted = bounds.multi_epoch if tight else bounds.worst_case
    bound = "multi-epoch peak" if tight else "upper bound"
    lasting = f"multi-epoch peak {human_size(bounds.multi_epoch)}"
    larger = _for_larger_batches(job, wanted)
    if floor < larger > wanted:
        reason = f"{bound} {human_size(wanted)} × 1.5, since batches vary in size"
        return Derived(round_up(larger, MIB), reason, origin)
    if wanted <= floor:
        reason = f"minimum size min(2 GiB, memory/2), above {bound} {human_size(wanted)}"
    elif tight:
        reason = f"{lasting}; upper bound {human_size(bounds.worst_case)} is over half of resources.memory"
    else:
        nccl = " + NCCL" if nccl_of_a_rank(job, ranks) else ""
        reason = f"upper bound: {lasting} + one storage per worker + 64 KiB pages{nccl}"
    return Derived(round_up(max(wanted, floor), MIB), reason, origin)


def _for_larger_batches(job: JobSpec, wanted: int) -> int:
    """Return an automatic size with room for batches larger than those measured, where those were of several sizes.

    That is only room: it stays within half of the memory limit, and is no need.
    """
    if not any(each.varying for each in job.data_loader.loaders):
        return wanted
    memory = job.resources.memory
    most = wanted + wanted // 2
    return most if memory is None else max(wanted, min(most, memory // 2))


def _under_ceiling(job: JobSpec, size: Derived) -> Derived:
    """Return the size: an automatic one is lowered where the policy allows less, one that is set is an error then."""
    most = job.ceiling("shm_size")
    if most is None or job.shm_size is not None or size.value <= most.value:
        return size
    return Derived(
        most.value // MIB * MIB,
        f"limited by the policy's max.shm_size; {format_size(size.value)} = {size.derivation}",
        str(Origin("policy", most.span)),
    )
