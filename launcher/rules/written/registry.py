"""Every rule of written texts, and what they say of one text together."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from types import ModuleType

from launcher.rules import (
    background_hides_exit_code,
    claim_template_of_memory,
    command_in_one_word,
    cpu_request_missing,
    cuda_in_worker,
    dollar_read_by_compose,
    dollar_without_shell,
    entrypoint_eats_arguments,
    flag_with_underscores,
    gpu_by_cdi_name,
    gpu_count_zero,
    gpu_not_requested,
    gpu_request_refused,
    gpus_list_unquoted,
    handle_shared_by_workers,
    healthcheck_missing,
    image_tag_floating,
    init_missing,
    ipc_of_host,
    ipc_of_none,
    ipc_with_size,
    lambda_to_spawned_worker,
    look_alike_in_environment,
    mounts_outside_container,
    name_too_long,
    nproc_under_omp,
    number_for_text,
    options_left_to_runner,
    pipe_hides_exit_code,
    privileged,
    remount_in_container,
    run_args_unused,
    seed_without_worker,
    shell_hides_signals,
    shell_takes_one_word,
    shm_at_wrong_place,
    shm_by_subpath,
    shm_mounted_twice,
    shm_of_host,
    shm_on_disk,
    shm_read_only,
    shm_set_in_image,
    shm_size_at_build,
    shm_size_below_workers,
    shm_size_in_swarm,
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
    size_left_to_gitlab_runner,
    size_not_in_effect,
    size_not_read,
    size_on_fargate,
    size_without_unit,
    spawn_without_main_guard,
    terminal_in_ci,
    terminal_in_script,
    threads_exceed_cpus,
    threads_unstated,
    training_in_deployment,
    uid_without_name,
    visible_devices_contradict,
    workers_exceed_cpus,
    workers_of_host,
    workers_zero_on_gpu,
    working_set_over_memory,
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
    background_hides_exit_code,
    command_in_one_word,
    cpu_request_missing,
    dollar_read_by_compose,
    entrypoint_eats_arguments,
    gpu_count_zero,
    gpu_not_requested,
    gpu_request_refused,
    healthcheck_missing,
    image_tag_floating,
    init_missing,
    ipc_of_none,
    look_alike_in_environment,
    name_too_long,
    number_for_text,
    privileged,
    remount_in_container,
    shell_takes_one_word,
    shm_at_wrong_place,
    shm_by_subpath,
    shm_mounted_twice,
    shm_size_below_workers,
    shm_size_in_swarm,
    size_left_to_gitlab_runner,
    size_not_in_effect,
    size_on_fargate,
    terminal_in_script,
    threads_exceed_cpus,
    threads_unstated,
    visible_devices_contradict,
    workers_zero_on_gpu,
    working_set_over_memory,
)
# A rule that says why a size is not in effect, and the rule that would then only say that it isn't.
_CAUSES = {
    shm_size_missing: (
        shm_volume_unmounted,
        mounts_outside_container,
        shm_size_at_build,
        flag_with_underscores,
        shm_at_wrong_place,
        remount_in_container,
    ),
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
