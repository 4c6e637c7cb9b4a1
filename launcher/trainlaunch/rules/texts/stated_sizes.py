"""How large /dev/shm is against its workers and its memory."""

from __future__ import annotations

from collections.abc import Iterator

from trainlaunch.diagnostics import Severity
from trainlaunch.formats.workload import ABSENT, SIZE, TMPFS, UNSIZED, Known, Workload
from trainlaunch.least_shm import LEAST_SHM
from trainlaunch.plan.memory_and_files import CHARGED
from trainlaunch.rules.base.rule import Problem
from trainlaunch.rules.base.text_rule import container_rule
from trainlaunch.rules.sources.container_facts import has_gpu, is_fragment, size_text, suggested_shm
from trainlaunch.rules.sources.purpose import certainly_trains, is_of_others, ranks_of, trains, workers_of
from trainlaunch.rules.sources.source_text import KUBERNETES, SourceContainer
from trainlaunch.rules.sources.training_commands import stated_prefetch
from trainlaunch.units import GIB, MIB, counted, human_size, round_up

_WHOLE_GPUS, _OF_A_NODE = frozenset({"", "nvidia.com/gpu", "amd.com/gpu"}), 8
_BATCHES_HELD = 2
_MIN_BATCH_BYTES = 4 * MIB  # seven RGB images of 224 × 224 as float32
_BESIDE_GPU, _BESIDE_CPU = 2 * GIB, 512 * MIB  # what one training process is estimated to use


def _size_in_memory(workload: Workload) -> Known[int] | None:
    """Return the size that is set for a /dev/shm that the container has for itself."""
    size = workload.shm.size
    return size if workload.shm.kind in {SIZE, TMPFS} and isinstance(size, Known) else None


@container_rule("TL201", Severity.ERROR)
def shm_size_over_memory(container: SourceContainer) -> Iterator[Problem]:
    """A container's /dev/shm may grow to its memory limit."""
    size, limit = _size_in_memory(container.workload), container.workload.memory
    if size is None or not isinstance(limit, Known):
        return
    if size.value >= limit.value >= MIB:  # a limit below one MiB is another mistake
        more = size_text(round_up(size.value + max(size.value // 2, 2 * MIB), MIB), container)
        less = size_text(round_up(max(limit.value // 2, MIB), MIB), container)
        yield Problem(
            f"/dev/shm of {size.text} does not fit in the memory limit {limit.text}",
            f"set the memory limit to {more}, or the size of /dev/shm to at most {less}",
            CHARGED,
            span=size.span,
            # One that equals the limit is what a kubelet takes where none is set.
            severity=_over(container) if size.value > limit.value else Severity.INFO,
        )


def _over(container: SourceContainer) -> Severity | None:
    """Return how grave a /dev/shm above the limit is: who fills it is killed, but where there is swap."""
    if not certainly_trains(container):
        return Severity.INFO
    swaps = not {"--memory-swap", "service.memswap_limit"}.isdisjoint(container.workload.rest)
    return Severity.WARNING if is_of_others(container) or workers_of(container) == 0 or swaps else None


@container_rule("TL204", Severity.WARNING)
def working_set_over_memory(container: SourceContainer) -> Iterator[Problem]:
    """The memory limit of a container that trains leaves a process no room beside /dev/shm."""
    size, limit = _size_in_memory(container.workload), container.workload.memory
    if size is None or not isinstance(limit, Known) or min(size.value, limit.value) < MIB:
        return
    beside = _BESIDE_GPU if has_gpu(container.workload) else _BESIDE_CPU
    left = limit.value - size.value
    if 0 < left < beside and trains(container):
        yield Problem(
            f"beside a full /dev/shm of {size.text} the memory limit {limit.text} leaves {human_size(left)}; one "
            f"training process takes about {human_size(beside)}",
            f"set the memory limit to {size_text(round_up(size.value + 2 * beside, MIB), container)}",
            CHARGED,
            span=limit.span,
        )


@container_rule("TL307", Severity.WARNING)
def shm_unlimited(container: SourceContainer) -> Iterator[Problem]:
    """Nothing sets the size of a /dev/shm in memory."""
    workload = container.workload
    if workload.shm.kind != UNSIZED:
        return
    limited = workload.memory is not None
    size = size_text(suggested_shm(workload, workers_of(container)), container)
    key = "sizeLimit" if workload.format == KUBERNETES else "size"
    bound = "the memory limit" if limited else "the node's memory"
    yield Problem(
        f"/dev/shm lies in memory and has no {key}: it can fill {bound}",
        f"add {key} {size}" + ("" if limited else ", and a memory limit above it"),
        "it is min(node's allocatable memory, memory limit, sizeLimit), of those that are set",
        span=workload.shm.span,
        severity=None if not limited and _has_neighbours(container) and trains(container) else Severity.INFO,
    )


def _has_neighbours(container: SourceContainer) -> bool:
    """Return whether others may well run on a container's machine: one with 8 GPUs, or with TPUs, has it alone."""
    gpus = container.workload.gpus
    whole = isinstance(gpus, Known) and gpus.value.resource in _WHOLE_GPUS and gpus.value.number >= _OF_A_NODE
    return not whole and "google.com/tpu" not in container.workload.devices


@container_rule("TL308", Severity.WARNING, KUBERNETES)
def shm_without_memory_limit(container: SourceContainer) -> Iterator[Problem]:
    """A container of a pod has a sized /dev/shm, no memory limit and no memory request."""
    workload, size = container.workload, container.workload.shm.size
    asked = workload.memory or workload.rest.get("container.resources.requests.memory")
    if workload.shm.kind != SIZE or not isinstance(size, Known) or asked is not None:
        return
    if not container.object_kind.endswith("TrainingRuntime") and not is_fragment(container):
        yield Problem(
            f"/dev/shm may take {size.text}, and the container has neither a memory limit nor a request",
            f"set resources.limits.memory to {size.text} plus what the processes use",
            "pages of /dev/shm are the container's memory; the scheduler reserves only what is requested",
            span=size.span,
            severity=None if _has_neighbours(container) and trains(container) else Severity.INFO,
        )


@container_rule("TL332", Severity.WARNING)
def shm_size_of_default(container: SourceContainer) -> Iterator[Problem]:
    """A text sets workers, and a size from 1 to 64 MiB."""
    size, workers = _size_in_memory(container.workload), workers_of(container)
    if size is not None and workers and MIB <= size.value <= LEAST_SHM:
        more = size_text(suggested_shm(container.workload, workers), container)
        yield Problem(
            f"/dev/shm has {size.text} for {counted(workers, 'DataLoader worker')}: no more than the default of 64 MiB",
            f"write {more}, or the size that docs/sizing.md computes",
            "the loaders take about workers × prefetch_factor × the bytes of one batch",
            span=size.span,
        )


@container_rule("TL335", Severity.WARNING)
def shm_size_below_workers(container: SourceContainer) -> Iterator[Problem]:
    """A size above the default holds the batches of the workers only if those are tiny."""
    size, workers = _size_in_memory(container.workload), workers_of(container)
    ranks = ranks_of(container)
    batches = ((workers or 0) * stated_prefetch(container.argvs) + _BATCHES_HELD) * ranks
    if size is not None and workers and LEAST_SHM < size.value < batches * _MIN_BATCH_BYTES:
        more = size_text(suggested_shm(container.workload, workers * ranks), container)
        yield Problem(
            f"/dev/shm of {size.text} holds {batches} batches of {counted(workers, 'worker')}"
            f"{f' in each of {ranks} ranks' if ranks > 1 else ''}, so none may exceed "
            f"{human_size(size.value // batches)}",
            f"set the size to {more}, or set fewer workers",
            "each worker prefetches batches into /dev/shm, and the loop uses two more",
            span=size.span,
        )


@container_rule("TL363", Severity.WARNING)
def size_not_in_effect(container: SourceContainer) -> Iterator[Problem]:
    """A size that is set leaves /dev/shm at the default."""
    shm, workers = container.workload.shm, workers_of(container)
    if shm.kind == ABSENT and isinstance(shm.declared, Known) and shm.span is not None:
        zero = shm.declared.value == 0
        yield Problem(
            f"the size {shm.declared.text} is left out, and /dev/shm has 64 MiB",
            f"write {size_text(suggested_shm(container.workload, workers), container)}",
            "0 is the default of 64 MiB" if zero else "Compose leaves out a size that is an unquoted decimal",
            span=shm.declared.span,
            severity=Severity.ERROR if workers and certainly_trains(container) else None,
        )
