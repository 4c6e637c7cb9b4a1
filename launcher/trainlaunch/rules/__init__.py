"""Judges a finished plan: what is an error, what a reviewer would say of a job that runs.

A rule is one function in the module of its family: `plan/` has those of plans, `texts/` those of texts that people
wrote. `base/` and `written/` have what they share, `text_findings.py` what the latter say of one text together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from pathlib import Path

from trainlaunch.diagnostics import Diagnostic, Severity, errors_among
from trainlaunch.errors import JobFileRejected
from trainlaunch.job.ceilings import Policy
from trainlaunch.job.command_script import script_on_this_machine
from trainlaunch.job.spec import JobSpec
from trainlaunch.plan import make_plan
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.repository.regular_files import read_regular
from trainlaunch.repository.root import ITS_OWN
from trainlaunch.rules.base.rule import PlanRule
from trainlaunch.rules.plan import code_mounts, rank_counts, sizes, target_effects
from trainlaunch.units import MIB

# In each group in the order in which findings are printed.
NUMBERS: tuple[PlanRule, ...] = (
    rank_counts.ranks_unknown,
    rank_counts.ranks_not_stated,
    rank_counts.workers_exceed_cpus,
)
# Most certain first; where the first speaks, the rest would only say it again.
SIZES: tuple[PlanRule, ...] = (
    sizes.shm_size_holds_no_worker,
    sizes.need_over_memory,
    sizes.shm_size_over_memory,
    sizes.shm_size_below_need,
    sizes.shm_size_for_one_epoch,
    sizes.working_set_over_memory,
)
# Said of a plan without errors, in the order of the job file's sections.
REMARKS: tuple[PlanRule, ...] = (
    target_effects.name_shortened,
    target_effects.not_applied_on_a_host,
    target_effects.image_tag_floating,
    sizes.shm_unsized,
    sizes.shm_owner_unnamed,
    rank_counts.prefetch_without_workers,
    code_mounts.code_untracked,
    code_mounts.code_with_secret,
    target_effects.interface_unstated,
    target_effects.attempts_without_checkpoint,
    target_effects.backoff_of_cluster,
)

MAX_SCRIPT_BYTES = MIB
_JUDGED = re.compile(  # a positional or required argument, or a signature that has such; how workers start; owners
    rb"""add_argument\(\s*["'][^-"']|required\s*=\s*True|click\.argument|typer|fire\.Fire|HfArgumentParser|TrlParser"""
    rb"""|\bclick\b|\babsl\b|get_arg|get_parser|set_start_method|\bspawn\b|object_store_memory|tensor_parallel_size"""
)

# Codes of rules that are gone, which policies may still name: a code is never given to another rule.
RETIRED = frozenset({"TL403"})


def device_rules() -> tuple[PlanRule, ...]:
    """Return the rule of variables that choose among GPUs; most jobs have none."""
    from trainlaunch.rules.plan.job_process import visible_devices_contradict

    return (visible_devices_contradict,)


def shell_rules() -> tuple[PlanRule, ...]:
    """Return the rules of a shell's text; most jobs have none, and the rules read one as `lint` does."""
    from trainlaunch.rules.plan import job_process

    return (job_process.pipe_hides_exit_code, job_process.background_hides_exit_code, job_process.shell_hides_signals)


def script_rules() -> tuple[PlanRule, ...]:
    """Return the rules of a script that is read; most plans are made where it isn't."""
    from trainlaunch.rules.plan import job_process

    return (
        job_process.required_argument_missing,
        job_process.start_method_of_script,
        job_process.shm_owner_of_script,
        rank_counts.script_has_more_workers,
    )


def start_rules() -> tuple[PlanRule, ...]:
    """Return the rules of a job that is about to start from its own folder; a plan may be made of a copy elsewhere."""
    return (code_mounts.script_not_mounted,)


def measured_rules() -> tuple[PlanRule, ...]:
    """Return the rules of a plan whose lock has measurements; most have none."""
    from trainlaunch.rules.plan import measurements

    return (
        measurements.probe_stale,
        measurements.tune_stale,
        measurements.larger_than_stated,
        measurements.workers_not_injected,
    )


def policy_rules() -> tuple[PlanRule, ...]:
    """Return the rules of a plan under a policy; most jobs have none."""
    from trainlaunch.rules.plan import policy_limits, policy_lists

    return (
        policy_limits.above_policy_ceiling,
        policy_limits.required_field_missing,
        policy_limits.required_label_missing,
        policy_lists.registry_not_allowed,
        policy_lists.image_not_pinned,
        policy_lists.not_allowed_by_policy,
    )


def plan_rules() -> tuple[PlanRule, ...]:
    """Return every rule of plans."""
    return (
        *NUMBERS,
        *SIZES,
        *policy_rules(),
        *REMARKS,
        *measured_rules(),
        *device_rules(),
        *shell_rules(),
        *script_rules(),
        *start_rules(),
    )


def plan_job(job: JobSpec, *, name: str | None = None) -> LaunchPlan:
    """Return the plan of `job`; `name` fixes its name.

    Raises JobFileRejected with every error that the numbers have.
    """
    return plan_and_findings(job, name=name)[0]


def plan_and_findings(job: JobSpec, *, name: str | None = None) -> tuple[LaunchPlan, tuple[Diagnostic, ...]]:
    """Return the plan of `job` as `plan_job` does, and what `check_plan` says of it."""
    plan = make_plan(job, name=name)
    return plan, check_plan(plan)


def check_plan(plan: LaunchPlan) -> tuple[Diagnostic, ...]:
    """Return what is to be said of `plan`: warnings and infos.

    Raises JobFileRejected with every error, and the warnings beside them.
    """
    problems = [*_name_of_service(plan), *_found(NUMBERS, plan), *_sizes(plan)]
    if _is_judged(plan.job):
        problems += _found(script_rules(), plan)
    if plan.job.policy is not None:
        problems += _found(policy_rules(), plan)
        problems += _severities(plan.job.policy)
    found = apply_severities(problems, plan.job.policy)
    if not errors_among(found):
        found = (*found, *apply_severities(_found(_remarks(plan), plan), plan.job.policy))
    if errors_among(found):
        raise JobFileRejected(found)
    return found


def check_start(plan: LaunchPlan) -> tuple[Diagnostic, ...]:
    """Return what `check_plan` does; what would end the job at once is an error here as well."""
    found = apply_severities(_found(start_rules(), plan), plan.job.policy)
    if errors_among(found):
        raise JobFileRejected(found)
    return check_plan(plan)


def _is_judged(job: JobSpec) -> bool:
    """Whether a job's script is here and has what is judged: most haven't, and reading one whole takes a while.

    Its workers are judged where nothing hands it the planned number.
    """
    path = script_on_this_machine(job)
    if path is None or not ITS_OWN.holds(path, Path(job.path)):
        return False
    try:
        text = read_regular(path, MAX_SCRIPT_BYTES)
    except (OSError, ValueError):
        return False
    handed = any("{num_workers}" in each for each in (*(job.command or ()), job.script or "", *job.env.values()))
    parser_elsewhere = b"parse_args" in text and b"add_argument(" not in text
    return _JUDGED.search(text) is not None or parser_elsewhere or (not handed and b"num_workers" in text)


def _remarks(plan: LaunchPlan) -> Iterator[PlanRule]:
    """Yield the rules that may have something to say; each that is left out would load what most plans don't need."""
    job = plan.job
    yield from REMARKS
    if any("VISIBLE_DEVICES" in name or name == "GPU_DEVICE_ORDINAL" for name in job.env):
        yield from device_rules()
    if job.script is not None or any(re.fullmatch(r"-[a-z]*c", each) for each in job.command or ()):
        yield from shell_rules()
    if job.measured:
        yield from measured_rules()


def _found(rules: Iterable[PlanRule], plan: LaunchPlan) -> Iterator[Diagnostic]:
    for rule in rules:
        yield from rule.check(plan)


def _sizes(plan: LaunchPlan) -> Iterable[Diagnostic]:
    """Return what is wrong between shm_size, peaks and memory limit: errors, or where there is none the rest."""
    found = tuple(_found(SIZES[:1], plan)) or tuple(_found(SIZES[1:], plan))
    return errors_among(found) or found


def _severities(policy: Policy) -> Iterable[Diagnostic]:
    if not policy.severities:
        return ()
    from trainlaunch.rules.text_findings import RULES

    known = {each.code for each in plan_rules()} | {each.code for each in RULES}
    return not_applicable(policy, known, {each.code for each in plan_rules() if each.severity is Severity.ERROR})


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


def apply_severities(found: Iterable[Diagnostic], policy: Policy | None) -> tuple[Diagnostic, ...]:
    """Return findings as severe as the policies in force make them, without those that they turn off."""
    weights = policy.severities if policy else {}
    stated = ((each, weights[each.code].severity if each.code in weights else each.severity) for each in found)
    return tuple(each._replace(severity=severity) for each, severity in stated if severity is not None)


def not_applicable(policy: Policy, known: Set[str], errors: Set[str]) -> Iterator[Diagnostic]:
    """Yield an error at each severity that can't be in effect: of an unknown code, or lower than an error's."""
    for code, (severity, span) in policy.severities.items():
        if code in RETIRED:
            continue
        if code not in known:
            said, fix = f"severities names {code}, which no rule has", "write a code of docs/codes.md, like TL206"
        elif code in errors and severity is not Severity.ERROR:
            asked = severity.value if severity else "off"
            said, fix = f"severities makes {code} {asked}, which is an error of every plan", f"delete {code} there"
        else:
            continue
        yield Diagnostic(
            "TL154",
            said,
            fix,
            why="an error of plan says that the job can't start or would die, wherever it runs",
            span=span,
            field=f"severities.{code}",
        )
