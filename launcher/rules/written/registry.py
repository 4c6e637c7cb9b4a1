"""Every rule of written texts, and what they say of one text together."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from types import ModuleType

from launcher.rules import (
    claim_template_of_memory,
    cuda_in_worker,
    dollar_without_shell,
    flag_with_underscores,
    gpu_by_cdi_name,
    gpus_list_unquoted,
    handle_shared_by_workers,
    ipc_of_host,
    ipc_with_size,
    lambda_to_spawned_worker,
    mounts_outside_container,
    nproc_under_omp,
    options_left_to_runner,
    pipe_hides_exit_code,
    run_args_unused,
    seed_without_worker,
    shell_hides_signals,
    shm_of_host,
    shm_on_disk,
    shm_read_only,
    shm_set_in_image,
    shm_size_at_build,
    shm_size_missing,
    shm_size_of_default,
    shm_size_over_memory,
    shm_unlimited,
    shm_volume_unmounted,
    shm_without_memory_limit,
    size_decimal,
    size_for_local_mode,
    size_fractional,
    size_in_podman_pod,
    size_in_thousandths,
    size_not_read,
    size_without_unit,
    spawn_without_main_guard,
    terminal_in_ci,
    training_in_deployment,
    uid_without_name,
    workers_exceed_cpus,
    workers_of_host,
)
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile

RULES: tuple[ModuleType, ...] = (
    shm_size_missing,
    size_without_unit,
    size_in_thousandths,
    size_not_read,
    size_decimal,
    size_fractional,
    shm_unlimited,
    shm_without_memory_limit,
    shm_on_disk,
    shm_volume_unmounted,
    mounts_outside_container,
    claim_template_of_memory,
    shm_size_at_build,
    shm_set_in_image,
    ipc_with_size,
    ipc_of_host,
    size_in_podman_pod,
    flag_with_underscores,
    gpus_list_unquoted,
    run_args_unused,
    options_left_to_runner,
    shell_hides_signals,
    dollar_without_shell,
    nproc_under_omp,
    gpu_by_cdi_name,
    size_for_local_mode,
    uid_without_name,
    pipe_hides_exit_code,
    shm_of_host,
    shm_read_only,
    shm_size_of_default,
    terminal_in_ci,
    training_in_deployment,
    shm_size_over_memory,
    workers_exceed_cpus,
    cuda_in_worker,
    handle_shared_by_workers,
    lambda_to_spawned_worker,
    seed_without_worker,
    spawn_without_main_guard,
    workers_of_host,
)
# A rule that says why a size is not in effect, and the rule that would then only say that it isn't.
_CAUSES = {
    shm_size_missing: (shm_volume_unmounted, mounts_outside_container, shm_size_at_build, flag_with_underscores),
    shm_without_memory_limit: (size_in_thousandths,),
}


def findings_of(file: WrittenFile, groups: Collection[str] = (DEFECTS,)) -> tuple[Finding, ...]:
    """Return what the rules of these groups say of a text, in its order."""
    found = {rule: tuple(rule.check_written(file)) for rule in RULES if rule.GROUP in groups}
    for rule, causes in _CAUSES.items():
        told = {each.place for cause in causes for each in found.get(cause, ()) if each.place}
        found[rule] = tuple(each for each in found.get(rule, ()) if each.place not in told)
    if found.get(claim_template_of_memory):  # the mount of what is no memory follows from it
        found[shm_on_disk] = ()
    return in_order(each for rule in RULES for each in found.get(rule, ()))


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings in the order of their places."""
    return tuple(sorted(findings, key=_order))


def _order(finding: Finding) -> tuple[int, int, str]:
    span = finding.diagnostic.span
    return (span.line, span.column, finding.diagnostic.code) if span is not None else (0, 0, finding.diagnostic.code)
