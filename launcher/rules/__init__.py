"""Judges a finished plan: what is an error, what a reviewer would say of a job that runs.

A rule is one module, named after what it allows to be said in `trainlaunch: allow`: CODE, NAME, SEVERITY, its manual as
docstring (what it does, then the sections that tests/rules asks for), and `check(plan)`, which yields values and knows
of no other rule. Adding one: the module, its place below, `python -m launcher.cli.codes >docs/codes.md`, one test.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from types import ModuleType

from launcher.diagnostics import Diagnostic, Severity, errors_among
from launcher.errors import JobFileRejected
from launcher.job.ceilings import Policy
from launcher.job.spec import JobSpec
from launcher.plan import make_plan
from launcher.plan.launch_plan import LaunchPlan
from launcher.rules import (
    attempts_without_checkpoint,
    backoff_of_cluster,
    code_untracked,
    code_with_secret,
    image_entrypoint_unknown,
    image_tag_floating,
    interface_unstated,
    name_shortened,
    need_over_memory,
    not_applied_on_a_host,
    prefetch_without_workers,
    ranks_not_stated,
    ranks_unknown,
    shm_size_below_need,
    shm_size_for_one_epoch,
    shm_size_holds_no_worker,
    shm_size_over_memory,
    shm_unsized,
    workers_exceed_cpus,
    working_set_over_memory,
)
from launcher.rules.weights import not_applicable, weighed

# In each group in the order in which findings are printed.
NUMBERS: tuple[ModuleType, ...] = (ranks_unknown, ranks_not_stated, workers_exceed_cpus)
# Most certain first; where the first speaks, the rest would only say it again.
SIZES: tuple[ModuleType, ...] = (
    shm_size_holds_no_worker,
    need_over_memory,
    shm_size_over_memory,
    shm_size_below_need,
    shm_size_for_one_epoch,
    working_set_over_memory,
)
# Said of a plan without errors, in the order of the job file's sections.
REMARKS: tuple[ModuleType, ...] = (
    name_shortened,
    not_applied_on_a_host,
    image_tag_floating,
    shm_unsized,
    prefetch_without_workers,
    code_untracked,
    code_with_secret,
    interface_unstated,
    attempts_without_checkpoint,
    backoff_of_cluster,
    image_entrypoint_unknown,
)


def _device_rules(plan: LaunchPlan) -> tuple[ModuleType, ...]:
    """Return the rule of variables that choose among GPUs; most jobs have none."""
    if not any("VISIBLE_DEVICES" in name or name == "GPU_DEVICE_ORDINAL" for name in plan.job.env):
        return ()
    from launcher.rules import visible_devices_contradict

    return (visible_devices_contradict,)


def _shell_rules(plan: LaunchPlan) -> tuple[ModuleType, ...]:
    """Return the rules of a shell's text; most jobs have none, and the rules read one as `lint` does."""
    if plan.job.script is None and not any(re.fullmatch(r"-[a-z]*c", each) for each in plan.job.command or ()):
        return ()
    from launcher.rules import background_hides_exit_code, pipe_hides_exit_code, shell_hides_signals

    return (pipe_hides_exit_code, background_hides_exit_code, shell_hides_signals)


def measured_rules() -> tuple[ModuleType, ...]:
    """Return the rules of a plan whose lock has measurements; most have none."""
    from launcher.rules import larger_than_stated, probe_stale, tune_stale, workers_not_injected

    return (probe_stale, tune_stale, larger_than_stated, workers_not_injected)


def policy_rules() -> tuple[ModuleType, ...]:
    """Return the rules of a plan under a policy; most jobs have none."""
    from launcher.rules import (
        above_policy_ceiling,
        image_not_pinned,
        not_allowed_by_policy,
        registry_not_allowed,
        required_field_missing,
        required_label_missing,
    )

    return (
        above_policy_ceiling,
        required_field_missing,
        required_label_missing,
        registry_not_allowed,
        image_not_pinned,
        not_allowed_by_policy,
    )


def all_rules() -> tuple[ModuleType, ...]:
    """Return every rule, those of written texts too."""
    from launcher.rules.written.registry import RULES

    return tuple(dict.fromkeys((*NUMBERS, *SIZES, *policy_rules(), *REMARKS, *measured_rules(), *RULES)))


def plan_job(job: JobSpec, *, name: str | None = None, force: bool = False) -> LaunchPlan:
    """Return the plan of `job`; `name` fixes its name, `force` lets a shm_size below need pass as a warning.

    Raises JobFileRejected with every error that the numbers have.
    """
    return plan_and_findings(job, name=name, force=force)[0]


def plan_and_findings(
    job: JobSpec, *, name: str | None = None, force: bool = False
) -> tuple[LaunchPlan, tuple[Diagnostic, ...]]:
    """Return the plan of `job` as `plan_job` does, and what `judged` says of it."""
    plan = make_plan(job, name=name, force=force)
    return plan, judged(plan)


def judged(plan: LaunchPlan) -> tuple[Diagnostic, ...]:
    """Return what is to be said of `plan`: warnings and infos.

    Raises JobFileRejected with every error, and the warnings beside them.
    """
    problems = [*_name_of_service(plan), *_found(NUMBERS, plan), *_sizes(plan)]
    if plan.job.policy is not None:
        problems += _found(policy_rules(), plan)  # last, and whatever --force says
        problems += _severities(plan.job.policy)
    found = weighed(problems, plan.job.policy)
    if not errors_among(found):
        rules = (*REMARKS, *_device_rules(plan), *_shell_rules(plan))
        rules += measured_rules() if plan.job.measured else ()
        found = (*found, *weighed(_found(rules, plan), plan.job.policy))
    if errors_among(found):
        raise JobFileRejected(found)
    return found


def _found(rules: Iterable[ModuleType], plan: LaunchPlan) -> Iterator[Diagnostic]:
    for rule in rules:
        yield from rule.check(plan)


def _sizes(plan: LaunchPlan) -> Iterable[Diagnostic]:
    """Return what is wrong between shm_size, need, memory limit and working set: errors, or where none is the rest."""
    found = tuple(_found(SIZES[:1], plan)) or tuple(_found(SIZES[1:], plan))
    return errors_among(found) or found


def _severities(policy: Policy) -> Iterable[Diagnostic]:
    if not policy.severities:
        return ()
    rules = all_rules()
    errors = {each.CODE for each in rules if each.SEVERITY is Severity.ERROR and hasattr(each, "check")}
    return not_applicable(policy, {each.CODE for each in rules}, errors)


def _name_of_service(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield what validation says of the name once `--name` is known: a Service's name starts with a letter."""
    kind, name = plan.job.kind, plan.name
    if kind is None or not (kind.letter_first or plan.nodes > 1) or not name[0].isdigit():
        return
    several = f" of {plan.nodes} nodes" if plan.nodes > 1 else ""
    yield Diagnostic(
        "TL107",
        f"name is {name}; a {kind.word}{several} needs one that starts with a letter",
        f"set name to job-{name}",
        why="its pods find each other through a Service of the same name, and those start with a letter",
        span=plan.job.span("name"),
        field="name",
    )
