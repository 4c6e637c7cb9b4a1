"""The law of /dev/shm: what the DataLoaders of a container need, and the size that every rendering states.

Per loader alive, W workers, prefetch P, page G (measured in real containers, tight to the page; see docs/sizing.md):

    need = (W·P + batches_held)·U + (3·W + 8)·G          U: one batch in pages; 0 for W = 0
    worst_case = need + W·M with G = 64 KiB, + NCCL            M: its largest storage
    container = ranks × Σ loaders + ranks × dataset tensors (spawn, forkserver) + shm_extra
    multi_epoch = container + ranks × Σ U                    fork: workers of a later epoch inherit the last batch
"""

from __future__ import annotations

from typing import NamedTuple

from launcher.job.spec import JobSpec, LoaderSpec, Origin
from launcher.plan.batch import batch_pages
from launcher.plan.launch_plan import Derived, LoaderNeed, SharedMemory
from launcher.units import GIB, KIB, MIB, counted, format_size, human_size, round_up

PAGE = 4 * KIB
LARGEST_PAGE = 64 * KIB  # Grace hosts
SEMAPHORES_PER_WORKER = 3  # index queue, its lock and its event; each one page
SEMAPHORES_PER_LOADER = 8  # result queue and the loader's own events
NCCL_ON_ONE_NODE = 128 * MIB  # per rank, an estimate: SHM segments of NCCL's channels
NCCL_BETWEEN_NODES = 40 * MIB  # per rank: the proxy pool of the network transport
SMALLEST = 64 * MIB  # what Docker and containerd give anyway
FLOOR = 2 * GIB
UNSIZED_WITHOUT_LIMIT = 8 * GIB
WHEN_FULL = "a full /dev/shm ends in 'Bus error' or 'No space left on device', or the training loop waits for ever"


class Workers(NamedTuple):
    """The number of workers of each loader: its own where stated, else the common automatic one."""

    auto: int

    def of(self, loader: LoaderSpec) -> int:
        """Return the workers of one loader."""
        return self.auto if loader.num_workers is None else loader.num_workers


def shared_memory(job: JobSpec, ranks: int, workers: Workers) -> SharedMemory:
    """Return /dev/shm of one container for these workers; checks nothing."""
    loaders = tuple(_loader_need(job, each, workers.of(each)) for each in job.data_loader.loaders)
    need = container_need(job, ranks, workers)
    worst_case = max(need, _container_worst_case(job, ranks, loaders))
    unsized = any(
        not each.sized and each.collate != "none" and each.num_workers != 0 for each in job.data_loader.loaders
    )
    multi_epoch = container_multi_epoch(job, ranks, workers)
    size = _under_ceiling(job, _size(job, _Bounds(need, multi_epoch, worst_case), ranks=None if unsized else ranks))
    one, two = (container_need(job, ranks, Workers(count)) for count in (1, 2))
    return SharedMemory(
        need=need,
        multi_epoch=multi_epoch,
        worst_case=worst_case,
        size=size,
        minimum=size.value if unsized and job.target_record.private_shm else need,
        unsized=unsized,
        per_worker=two - one,
        fixed=2 * one - two,
        without_workers=container_need(job, ranks, Workers(0)),
        loaders=loaders,
    )


def container_need(job: JobSpec, ranks: int, workers: Workers) -> int:
    """Return the bytes that exactly suffice for one epoch: one page less fails."""
    spec = job.data_loader
    file_system = spec.sharing_strategy == "file_system"
    of_one_rank = sum(
        _law(each, workers.of(each), batch_pages(each, PAGE, file_system=file_system).unit, PAGE)
        for each in spec.loaders
    )
    pickled = spec.multiprocessing_context != "fork" and any(workers.of(each) for each in spec.loaders)
    if pickled:
        of_one_rank += round_up(spec.dataset_tensor_bytes, PAGE)
    return ranks * of_one_rank + sum(round_up(each.size, PAGE) for each in job.shm_extra)


def container_multi_epoch(job: JobSpec, ranks: int, workers: Workers) -> int:
    """Return the bytes that suffice for more than one epoch.

    Measured: under fork the workers of each later epoch inherit the last batch, which the loop variable still holds,
    and keep it mapped after the loop has let go of it.
    """
    need, spec = container_need(job, ranks, workers), job.data_loader
    if spec.multiprocessing_context != "fork":
        return need
    file_system = spec.sharing_strategy == "file_system"
    alive = (each for each in spec.loaders if workers.of(each))
    return need + ranks * sum(batch_pages(each, PAGE, file_system=file_system).unit for each in alive)


def _loader_need(job: JobSpec, loader: LoaderSpec, workers: int) -> LoaderNeed:
    file_system = job.data_loader.sharing_strategy == "file_system"
    pages = batch_pages(loader, PAGE, file_system=file_system)
    large = batch_pages(loader, LARGEST_PAGE, file_system=file_system)
    return LoaderNeed(
        name=loader.name,
        workers=workers,
        auto=loader.num_workers is None,
        prefetch_factor=loader.prefetch_factor,
        batches_held=loader.batches_held,
        unit=pages.unit,
        largest=pages.largest,
        tensors=pages.tensors,
        need=_law(loader, workers, pages.unit, PAGE),
        worst_case=_law(loader, workers, large.unit, LARGEST_PAGE) + workers * large.largest,
    )


def _law(loader: LoaderSpec, workers: int, unit: int, page: int) -> int:
    if workers == 0:
        return 0
    batches = workers * loader.prefetch_factor + loader.batches_held
    return batches * unit + (SEMAPHORES_PER_WORKER * workers + SEMAPHORES_PER_LOADER) * page


def _container_worst_case(job: JobSpec, ranks: int, loaders: tuple[LoaderNeed, ...]) -> int:
    of_one_rank = sum(each.worst_case for each in loaders)
    if job.data_loader.multiprocessing_context != "fork" and any(each.workers for each in loaders):
        of_one_rank += round_up(job.data_loader.dataset_tensor_bytes, LARGEST_PAGE)
    if job.resources.gpus:
        of_one_rank += (ranks > 1) * NCCL_ON_ONE_NODE + (job.nodes > 1) * NCCL_BETWEEN_NODES
    return ranks * of_one_rank + sum(round_up(each.size, LARGEST_PAGE) for each in job.shm_extra)


class _Bounds(NamedTuple):
    need: int
    multi_epoch: int
    worst_case: int


def _size(job: JobSpec, bounds: _Bounds, *, ranks: int | None) -> Derived:
    """Return the size that every rendering states: the job's own, or the automatic one rounded up to MiB.

    `ranks` is None where no sample says what a batch takes.
    """
    if job.shm_size is not None:
        return Derived(job.shm_size, "stated", str(job.origin("shm_size")))
    memory = job.resources.memory
    origin = str(job.origin("resources.memory")) if memory else "default"
    if ranks is None:
        cap = memory // 2 if memory else UNSIZED_WITHOUT_LIMIT
        text = f"unsized (no sample): {'half of resources.memory' if memory else human_size(cap) + ', no memory limit'}"
        return Derived(round_up(max(cap, bounds.multi_epoch, SMALLEST), MIB), text, origin)
    floor = max(SMALLEST, min(FLOOR, memory // 2) if memory else FLOOR)
    tight = memory is not None and bounds.worst_case > memory // 2
    wanted = bounds.multi_epoch if tight else max(bounds.worst_case, bounds.multi_epoch)
    need = f"need {human_size(bounds.need)}"
    inherited = f"{need} + one batch of each loader, which forked workers of later epochs inherit"
    if wanted <= floor:
        reason = (
            f"the floor min(2 GiB, memory/2), above {'multi_epoch' if tight else 'worst_case'} {human_size(wanted)}"
        )
    elif tight:
        grown = inherited if bounds.multi_epoch > bounds.need else need
        reason = f"{grown}; worst_case {human_size(bounds.worst_case)} is over half of resources.memory, so no reserve"
    elif bounds.multi_epoch > bounds.worst_case:
        reason = inherited
    else:
        reason = f"worst_case: {need} + one storage per worker + 64 KiB pages{_nccl(job, ranks)}"
    return Derived(round_up(max(wanted, floor), MIB), reason, origin)


def _under_ceiling(job: JobSpec, size: Derived) -> Derived:
    """Return the size, an automatic one capped where the policy allows less; a stated one is an error then."""
    most = job.ceiling("shm_size")
    if most is None or job.shm_size is not None or size.value <= most.value:
        return size
    text = f"capped by the policy's max.shm_size; {format_size(size.value)} = {size.derivation}"
    return Derived(most.value // MIB * MIB, text, str(Origin("policy", most.span)))


def _nccl(job: JobSpec, ranks: int) -> str:
    several = ranks > 1 or (job.torchrun is not None and job.torchrun.nnodes > 1)
    return " + NCCL" if job.resources.gpus and several else ""


def need_derivation(job: JobSpec, shm: SharedMemory, ranks: int) -> str:
    """Return the sum behind `shm.need` as one line of text."""
    parts = [
        f"{each.name}: ({counted(each.workers, 'worker')}·{each.prefetch_factor} + {each.batches_held} held)"
        f"·{human_size(each.unit)} + {counted(SEMAPHORES_PER_WORKER * each.workers + SEMAPHORES_PER_LOADER, 'page')}"
        for each in shm.loaders
        if each.workers
    ]
    pickled = round_up(job.data_loader.dataset_tensor_bytes, PAGE)
    if parts and pickled and job.data_loader.multiprocessing_context != "fork":
        parts.append(f"tensors of the dataset {human_size(pickled)}")
    inner = "; ".join(parts) or "no workers"
    of_all_ranks = f"{ranks} ranks × [{inner}]" if ranks > 1 and parts else inner
    return " + ".join([of_all_ranks, *(f"{each.name} {human_size(each.size)}" for each in job.shm_extra)])
