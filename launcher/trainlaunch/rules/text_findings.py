"""Every rule of written texts, and what they say of one text together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from trainlaunch.kinds import CONFIG_MAP
from trainlaunch.rules.base.text_rule import TextRule
from trainlaunch.rules.sources.purpose import purpose_of
from trainlaunch.rules.sources.source_text import DEFECTS, KUBERNETES, SourceText, TextFinding, at, entries_in, text_at
from trainlaunch.rules.texts import (
    base_images,
    batch_jobs,
    commands,
    compose_values,
    container_practice,
    cpus,
    docker_lines,
    gpu_requests,
    memory_limits,
    missing_sizes,
    platforms,
    script_loaders,
    shells,
    shm_mounts,
    size_units,
    stated_sizes,
)
from trainlaunch.yamltree.tolerant import Scalar

FAMILIES = (
    commands,
    compose_values,
    container_practice,
    cpus,
    docker_lines,
    gpu_requests,
    script_loaders,
    shells,
    size_units,
    stated_sizes,
    missing_sizes,
    platforms,
    shm_mounts,
    batch_jobs,
    base_images,
    memory_limits,
)
RULES = tuple(each for family in FAMILIES for each in vars(family).values() if isinstance(each, TextRule))
# A rule that says why a size is not in effect, and the rule that would then only say that it isn't.
_CAUSES: dict[TextRule, tuple[TextRule, ...]] = {
    missing_sizes.shm_size_missing: (
        shm_mounts.shm_volume_unmounted,
        shm_mounts.mounts_outside_container,
        missing_sizes.shm_size_at_build,
        docker_lines.flag_with_underscores,
        shm_mounts.shm_at_wrong_place,
        shm_mounts.remount_in_container,
        missing_sizes.shm_size_in_environment,
    ),
    stated_sizes.shm_without_memory_limit: (size_units.size_in_thousandths,),
}


def findings_of(file: SourceText, groups: Collection[str] = (DEFECTS,)) -> tuple[TextFinding, ...]:
    """Return what the rules of these groups say of a text, in its order."""
    carried = dict(_carried(file))
    weighed = (each._replace(purpose=purpose_of(each, carried)) for each in file.containers)
    file = file._replace(containers=tuple(weighed))
    found = {rule: tuple(rule.check(file)) for rule in RULES if rule.group in groups}
    for rule, causes in _CAUSES.items():
        told = {each.place for cause in causes for each in found.get(cause, ()) if each.place}
        found[rule] = tuple(each for each in found.get(rule, ()) if each.place not in told)
    if found.get(shm_mounts.claim_template_of_memory):  # the mount of what is no memory follows from it
        found[shm_mounts.shm_on_disk] = ()
    purposes = {each.workload.place: each.purpose for each in file.containers}
    kept = (each for rule in RULES for each in found.get(rule, ()) if each.group in groups)
    # An anchor stands once in the text, whoever merges it.
    once = {(each.diagnostic.code, each.diagnostic.message, each.diagnostic.span): each for each in reversed([*kept])}
    return in_order(each._replace(purpose=purposes.get(each.place)) for each in once.values())


def _carried(file: SourceText) -> Iterator[tuple[str, str]]:
    """Yield the scripts that ConfigMaps of a text carry, by their names."""
    for root in file.nodes if file.kind == KUBERNETES else ():
        held = entries_in(at(root, "data")) if text_at(root, "kind") == CONFIG_MAP.name else {}
        yield from (
            (name, each.text) for name, each in held.items() if isinstance(each, Scalar) and name.endswith(".py")
        )


def in_order(findings: Iterable[TextFinding]) -> tuple[TextFinding, ...]:
    """Return findings in the order of their places."""
    return tuple(sorted(findings, key=_order))


def _order(finding: TextFinding) -> tuple[int, int, str]:
    span = finding.diagnostic.span
    return (span.line, span.column, finding.diagnostic.code) if span is not None else (0, 0, finding.diagnostic.code)
