"""Containers of written texts that pass a policy's limits, as `above-policy-ceiling` says it of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trainlaunch.diagnostics import Severity, Span
from trainlaunch.formats.workload import Known
from trainlaunch.job.ceilings import Policy
from trainlaunch.rules.base.rule import Problem
from trainlaunch.rules.base.text_rule import container_rule
from trainlaunch.rules.sources.container_facts import command_span, gpu_count
from trainlaunch.rules.sources.purpose import workers_of
from trainlaunch.rules.sources.source_text import SourceContainer, SourceText, TextFinding
from trainlaunch.units import format_cpus, format_size


def above_ceilings(file: SourceText, policy: Policy) -> Iterator[TextFinding]:
    """Yield an error for each value that is set above a limit; what a text leaves out is unknown, not an error."""

    @container_rule("TL140", Severity.ERROR)
    def above_policy_ceiling(container: SourceContainer) -> Iterator[Problem]:
        for name, what, value, spell, span in _values(container):
            most = policy.max.get(name)
            if most is not None and value > most.value:
                place, limit = f"{most.span.file}:{most.span.line}", spell(most.value)
                yield Problem(
                    f"{what} {spell(value)} is above the policy's max.{name} {limit} ({place})",
                    f"write {limit} or less, or raise max.{name} in {place}",
                    "a policy's limits apply to every file below its folder",
                    span=span,
                )

    return above_policy_ceiling.check(file)


def _values(written: SourceContainer) -> Iterator[tuple[str, str, int, Callable[[int], str], Span]]:
    """Yield each value of a container that a limit may hold for, with its name and its words."""
    workload = written.workload
    sizes = (("memory", "the memory limit", workload.memory), ("shm_size", "/dev/shm of", workload.shm.size))
    for name, what, size in sizes:
        if isinstance(size, Known):
            yield name, what, size.value, format_size, size.span
    if isinstance(workload.cpus, Known):
        yield "cpus", "the CPU limit", workload.cpus.value, format_cpus, workload.cpus.span
    count = gpu_count(workload)
    if count and workload.gpus is not None:
        yield "gpus", "the number of GPUs", count, str, workload.gpus.span
    workers = workers_of(written)
    if workers:
        yield "num_workers", "the number of DataLoader workers", workers, str, command_span(workload)
