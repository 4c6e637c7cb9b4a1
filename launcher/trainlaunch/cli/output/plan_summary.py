"""A plan in eight lines: what a reader wants to know of a job before it starts, in words."""

from __future__ import annotations

from collections.abc import Iterator

from trainlaunch.cli.output.streams import wrapped
from trainlaunch.diagnostics import Diagnostic, Severity
from trainlaunch.gpu_names import ALL_GPUS
from trainlaunch.plan.instrumentation import OVERRIDING, WORKERS
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.lock_overrides import fresh_tune
from trainlaunch.plan.shm_sum_text import need_words
from trainlaunch.plan.workers_and_threads import COMPILE, IN_WORKERS, alike
from trainlaunch.units import counted, format_cpus, format_duration, format_size, human_size

WIDTH = 100  # of what is piped


def summary(plan: LaunchPlan, found: tuple[Diagnostic, ...], columns: int | None) -> str:
    """Return the eight lines; `found` is what the rules say, which is shown below them."""
    rows = [
        ("job", _job(plan)),
        ("/dev/shm", _shm(plan)),
        ("memory", _memory(plan)),
        ("workers", _workers(plan)),
        ("threads", _threads(plan)),
        ("GPUs", _gpus(plan)),
        ("checks", ", ".join(_checks(plan))),
        ("findings", _findings(found)),
    ]
    indent = max(len(name) for name, _ in rows) + 2
    return "\n".join(wrapped(f"{name:<{indent}}{words}", columns or WIDTH, indent) for name, words in rows) + "\n"


def _job(plan: LaunchPlan) -> str:
    policies = f", under {counted(len(plan.job.policy.files), 'policy file')}" if plan.job.policy else ""
    image = f" of {plan.job.image}" if plan.job.image and plan.target_record.starts_container else ""
    return f"{plan.name}{image}, target {plan.target}{policies} ({plan.job.path})"


def _shm(plan: LaunchPlan) -> str:
    from trainlaunch.rules.sources.deciding_workers import runs_no_worker  # which reads the script

    shm, size = plan.shm, format_size(plan.shm.size.value)
    if not plan.job.data_loader.loaders:
        return f"{size}; the job has no DataLoader"
    if shm.unsized and not runs_no_worker(plan):
        return f"{size}; what the DataLoaders take is unknown without a sample"
    return f"{size}; {need_words(shm)}"


def _memory(plan: LaunchPlan) -> str:
    processes = f"estimated process memory {human_size(plan.memory.working_set.value)}, without /dev/shm"
    return f"{'no limit' if plan.memory.limit is None else format_size(plan.memory.limit)}; {processes}"


def _workers(plan: LaunchPlan) -> str:
    loaders = plan.shm.loaders
    if not loaders:
        return "none"
    numbers = {each.workers for each in loaders}
    each = f"{numbers.pop()} per loader" if len(numbers) == 1 else ", ".join(f"{x.name} {x.workers}" for x in loaders)
    ranks = f" in each of {plan.ranks.value} ranks" if plan.ranks.value > 1 else ""
    from trainlaunch.rules.sources.deciding_workers import deciding_workers  # which reads the script

    by_rule = plan.auto_workers and fresh_tune(plan.job) is None
    tune = "; by rule, and `trainlaunch tune` may know better" if by_rule else ""
    return f"{each}{ranks}; {deciding_workers(plan.job).words}{tune}"


def _threads(plan: LaunchPlan) -> str:
    cpus = plan.job.resources.cpus
    where = "CPUs not set" if cpus is None else f"of {counted(format_cpus(cpus), 'CPU')}"
    if not plan.threads:
        return (
            f"{'not set' if plan.job.data_loader.inject == 'off' else 'set from the CPUs that the job finds'}; {where}"
        )
    places = dict.fromkeys(IN_WORKERS, "in each worker") | {COMPILE: "for torch.compile"}
    groups = (
        (threads.value, " and ".join(dict.fromkeys(places.get(each, "for maths") for each in names)))
        for threads, names in alike(plan.threads).items()
    )
    return f"{', '.join(f'{number} {place}' for number, place in groups)}; {where}"


def _gpus(plan: LaunchPlan) -> str:
    gpus = plan.gpus
    count = "none" if not gpus else ALL_GPUS if gpus.all else str(gpus.count)
    ids = f" ({','.join(gpus.ids)})" if gpus.ids else ""
    nodes = f" in each of {plan.nodes} containers" if plan.nodes > 1 else ""
    return f"{count}{ids}; {counted(plan.ranks.value, 'rank')}{nodes}"


def _checks(plan: LaunchPlan) -> Iterator[str]:
    health = plan.job.healthcheck
    yield "/dev/shm, memory and files before the script's first line"
    if plan.target_record.starts_container:
        yield f"its health every {format_duration(health.interval)}"
    if health.stall_after is not None:
        yield f"{'stopped' if health.stops else 'told'} after {format_duration(health.stall_after)} without a batch"
    if WORKERS in plan.inside.parts:
        yield f"num_workers set in the script ({'all of them' if _forced(plan) else 'where none is set'})"


def _forced(plan: LaunchPlan) -> bool:
    return plan.job.data_loader.inject == OVERRIDING


def _findings(found: tuple[Diagnostic, ...]) -> str:
    why = "; --why: what each number follows from"
    names = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
    told = [counted(count, name) for level, name in names.items() if (count := sum(x.severity is level for x in found))]
    return (", ".join(told) + ", below" if told else "none") + why
