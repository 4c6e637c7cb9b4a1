"""Every rule of written texts, and what they and a policy's ceilings say of one text together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from trainlaunch.diagnostics import Severity, Span
from trainlaunch.formats.workload import Known
from trainlaunch.job.ceilings import Policy
from trainlaunch.rules.base.rule import Problem
from trainlaunch.rules.base.text_rule import TextRule, container_rule
from trainlaunch.rules.sources.container_facts import command_span, gpu_count, workers_of
from trainlaunch.rules.sources.source_text import DEFECTS, SourceContainer, SourceText, TextFinding
from trainlaunch.rules.texts import (
    commands,
    compose_values,
    container_practice,
    cpus,
    gpu_requests,
    missing_sizes,
    platforms,
    script_loaders,
    shm_mounts,
    stated_sizes,
)
from trainlaunch.units import format_cpus, format_size

FAMILIES = (
    commands,
    compose_values,
    container_practice,
    cpus,
    gpu_requests,
    script_loaders,
    stated_sizes,
    missing_sizes,
    platforms,
    shm_mounts,
)
RULES = tuple(each for family in FAMILIES for each in vars(family).values() if isinstance(each, TextRule))
# A rule that says why a size is not in effect, and the rule that would then only say that it isn't.
_CAUSES: dict[TextRule, tuple[TextRule, ...]] = {
    missing_sizes.shm_size_missing: (
        shm_mounts.shm_volume_unmounted,
        shm_mounts.mounts_outside_container,
        missing_sizes.shm_size_at_build,
        commands.flag_with_underscores,
        shm_mounts.shm_at_wrong_place,
        shm_mounts.remount_in_container,
        missing_sizes.shm_size_in_environment,
    ),
    stated_sizes.shm_without_memory_limit: (stated_sizes.size_in_thousandths,),
}


def findings_of(file: SourceText, groups: Collection[str] = (DEFECTS,)) -> tuple[TextFinding, ...]:
    """Return what the rules of these groups say of a text, in its order."""
    found = {rule: tuple(rule.check(file)) for rule in RULES if rule.group in groups}
    for rule, causes in _CAUSES.items():
        told = {each.place for cause in causes for each in found.get(cause, ()) if each.place}
        found[rule] = tuple(each for each in found.get(rule, ()) if each.place not in told)
    if found.get(shm_mounts.claim_template_of_memory):  # the mount of what is no memory follows from it
        found[shm_mounts.shm_on_disk] = ()
    return in_order(each for rule in RULES for each in found.get(rule, ()))


def in_order(findings: Iterable[TextFinding]) -> tuple[TextFinding, ...]:
    """Return findings in the order of their places."""
    return tuple(sorted(findings, key=_order))


def _order(finding: TextFinding) -> tuple[int, int, str]:
    span = finding.diagnostic.span
    return (span.line, span.column, finding.diagnostic.code) if span is not None else (0, 0, finding.diagnostic.code)


def above_ceilings(file: SourceText, policy: Policy) -> Iterator[TextFinding]:
    """Yield an error for each stated value above a ceiling; what a text leaves out is unknown, and nobody's error."""

    @container_rule("TL140", Severity.ERROR)
    def above_policy_ceiling(container: SourceContainer) -> Iterator[Problem]:
        for name, what, value, spell, span in _values(container):
            most = policy.max.get(name)
            if most is not None and value > most.value:
                place, limit = f"{most.span.file}:{most.span.line}", spell(most.value)
                yield Problem(
                    f"{what} {spell(value)} is above the policy's max.{name} {limit} ({place})",
                    f"write {limit} or less, or raise max.{name} in {place}",
                    "a policy's ceilings hold for every text below its folder",
                    span=span,
                )

    return above_policy_ceiling.check(file)


def _values(written: SourceContainer) -> Iterator[tuple[str, str, int, Callable[[int], str], Span]]:
    """Yield each value of a container that a ceiling may bound, with its name and its words."""
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
