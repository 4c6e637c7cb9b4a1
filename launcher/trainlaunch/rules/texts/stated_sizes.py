"""How large /dev/shm is against its workers and its memory, and sizes whose unit is another one than meant, or none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from trainlaunch.diagnostics import Edit, Severity
from trainlaunch.formats.workload import ABSENT, SIZE, TMPFS, UNSIZED, Known, Unknown, Value, Workload
from trainlaunch.least_shm import LEAST_SHM
from trainlaunch.plan.memory_and_files import CHARGED
from trainlaunch.rules.base.rule import Problem
from trainlaunch.rules.base.text_rule import container_rule
from trainlaunch.rules.sources.container_facts import KINDS_OF_PODS, has_gpu, is_fragment, size_text, suggested_shm
from trainlaunch.rules.sources.purpose import certainly_trains, is_of_others, ranks_of, trains, workers_of
from trainlaunch.rules.sources.source_text import COMPOSE, ECS, KUBERNETES, SourceContainer
from trainlaunch.rules.sources.training_commands import stated_prefetch
from trainlaunch.units import GIB, MIB, counted, human_size, round_up

_KNOWN_KINDS = KINDS_OF_PODS | {  # whose sizes Kubernetes reads
    *("Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate", "CronWorkflow", "Service"),
}
_DECIMAL = re.compile(r"[\"']?([0-9.]+)([MGT])[\"']?", re.ASCII)
_FRACTION = re.compile(r"([\"']?)([0-9]{1,15}\.[0-9]{1,15})([KMGT])i\1", re.ASCII)
_MILLI = re.compile(r"([\"']?)([0-9]+)m\1", re.ASCII)
_SIZE = re.compile(r"[\"']?([0-9]+(?:[.,][0-9]+)?)[ _]*([KMGT])i?(?:b|bytes?)?[\"']?", re.ASCII | re.IGNORECASE)
_BINARY = re.compile(r"([\"']?)([0-9]+)([KMGT])i\1", re.ASCII | re.IGNORECASE)
_BEGINS_AS_SIZE = re.compile(r"""["']?[.\d][^$`{!<>\[\]]*\Z""")  # else a placeholder, or what a variable decides
_MAX_DIGITS = 6  # of a size in thousandths; a longer one was written by a machine, and is right


def _sizes(container: SourceContainer, shm: str) -> tuple[tuple[str, Value[int]], ...]:
    """Return the sizes of /dev/shm, which is called `shm`, and of the memory limit."""
    workload = container.workload
    return (shm, workload.shm.size or workload.shm.declared), ("memory", workload.memory)


@container_rule("TL302", Severity.ERROR)
def size_without_unit(container: SourceContainer) -> Iterator[Problem]:
    """A size is a bare number below one MiB."""
    for what, value in _sizes(container, "/dev/shm"):
        if not isinstance(value, Known) or not 0 < value.value < MIB:
            continue
        number = value.text.strip("\"'").rstrip("bB")
        if number.isdecimal():
            unit = {KUBERNETES: "Gi", COMPOSE: "gb"}.get(container.workload.format, "g")
            if value.value >= 1024:
                unit = {KUBERNETES: "Mi", COMPOSE: "mb"}.get(container.workload.format, "m")
            yield Problem(
                f"the size of {what} is {value.text}: {value.value} bytes, less than one MiB",
                f"write {number}{unit}",
                "a number without a unit counts bytes",
                span=value.span,
                severity=_of_reader(container),
            )


def _of_reader(container: SourceContainer) -> Severity | None:
    """Return how grave a size is that its reader takes otherwise: who reads an object of unknown kind nobody knows."""
    unknown = container.workload.format == KUBERNETES and container.object_kind not in _KNOWN_KINDS
    return Severity.WARNING if unknown or container.podman else None


@container_rule("TL303", Severity.ERROR, KUBERNETES)
def size_in_thousandths(container: SourceContainer) -> Iterator[Problem]:
    """A size of a pod is in thousandths of a byte."""
    for what, value in _sizes(container, "sizeLimit"):
        match = _MILLI.fullmatch(value.text) if isinstance(value, Known) else None
        if match and value is not None and len(match[2]) <= _MAX_DIGITS:
            quote, number = match[1], match[2]
            yield Problem(
                f"{what} {number}m is {int(number) / 1000:g} bytes",
                f"write {number}Mi",
                "in Kubernetes m is a thousandth; 512m means 512 MiB only in Docker",
                span=value.span,
                edits=(Edit(value.span, f"{quote}{number}Mi{quote}"),),
            )


@container_rule("TL304", Severity.ERROR)
def size_not_read(container: SourceContainer) -> Iterator[Problem]:
    """A size is a Kubernetes quantity in docker or Compose, or no size at all to its reader."""
    workload = container.workload
    shm = workload.shm
    for what, value in (("/dev/shm", shm.size), ("/dev/shm", shm.declared), ("memory", workload.memory)):
        if not isinstance(value, Unknown) or "unclear" in workload.rest or not _BEGINS_AS_SIZE.match(value.text):
            continue
        message = f"the size of {what} is {value.text}, which is not a size here"
        match = _BINARY.fullmatch(value.text) if workload.format not in {KUBERNETES, ECS} else None
        if match is None:
            yield Problem(
                message,
                _size_of(value.text, workload.format),
                "the reader of this file knows other units, and stops with an error",
                span=value.span,
                severity=_of_reader(container),
            )
            continue
        size = match[2] + match[3].lower() + ("b" if workload.format == COMPOSE else "")
        yield Problem(
            message,
            f"write {size}",
            "Ki, Mi and Gi are Kubernetes' suffixes; docker and Compose read k, m and g, in the same powers of two",
            span=value.span,
            severity=_of_reader(container),  # old versions of Podman take them
            edits=(Edit(value.span, f"{match[1]}{size}{match[1]}"),),
        )


def _size_of(text: str, reader: str) -> str:
    """Return the fix for a text that is no size to its reader: the nearest that is one."""
    if reader == ECS:
        return "write a whole number of MiB, as 2048"
    form = {KUBERNETES: "Gi", COMPOSE: "gb"}.get(reader, "g")
    match = _SIZE.fullmatch(text)
    if match is None:
        return f"write a size like 8{form}"
    return f"write {match[1].replace(',', '.')}{form.replace('g', match[2].lower()).replace('G', match[2].upper())}"


@container_rule("TL305", Severity.INFO, KUBERNETES)
def size_decimal(container: SourceContainer) -> Iterator[Problem]:
    """Kubernetes reads a size of /dev/shm in powers of ten."""
    size = container.workload.shm.size
    match = _DECIMAL.fullmatch(size.text) if isinstance(size, Known) else None
    if match and isinstance(size, Known):
        number, letter = match[1], match[2]
        yield Problem(
            f"sizeLimit {number}{letter} is {size.value / GIB:.1f} GiB",
            f"write {number}{letter}i for powers of two; in Docker this size is {size.value // MIB}m",
            f"{letter} counts in powers of ten in Kubernetes and in powers of two in Docker",
            span=size.span,
        )


@container_rule("TL306", Severity.WARNING, KUBERNETES)
def size_fractional(container: SourceContainer) -> Iterator[Problem]:
    """A size of a pod is not a whole number of bytes."""
    workload = container.workload
    for what, value in (("sizeLimit", workload.shm.size), ("memory", workload.memory)):
        match = _FRACTION.fullmatch(value.text) if isinstance(value, Known) else None
        if match is None or value is None:
            continue
        exact = Fraction(match[2]) * 2 ** (10 * ("KMGT".index(match[3]) + 1))
        if exact.denominator != 1:
            rounded = f"{-(-exact // MIB)}Mi"
            yield Problem(
                f"{what} {match[2]}{match[3]}i is not a whole number of bytes",
                f"write {rounded}",
                "the API server stores it in thousandths of a byte and warns; other readers refuse it",
                span=value.span,
                edits=(Edit(value.span, f"{match[1]}{rounded}{match[1]}"),),
            )


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
        severity=None if not limited and trains(container) else Severity.INFO,
    )


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
            severity=None if trains(container) else Severity.INFO,
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
