"""`trainlaunch plan`: the decided numbers, as a short table or a stable JSON document."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator

from trainlaunch.cli.arguments.job_arguments import (
    CONTRACT_EXIT_CODES,
    OUTPUT_ARGUMENT,
    job_arguments,
    plan_of,
    say_findings,
)
from trainlaunch.cli.arguments.verb_table import Usage, argument
from trainlaunch.cli.output.plan_summary import WIDTH, summary
from trainlaunch.cli.output.report import as_json, document
from trainlaunch.cli.output.streams import Streams, columns_of, wrapped
from trainlaunch.container.job_variables import USUAL, shutdown_timeout
from trainlaunch.diagnostics import Severity
from trainlaunch.gpu_names import ALL_GPUS
from trainlaunch.job.ceilings import PolicyValue
from trainlaunch.job.loader_spec import KIND
from trainlaunch.job.spec import Origin
from trainlaunch.plan.instrumentation import DATA_WAIT, HEARTBEAT, OVERRIDING, WORKERS, latest_stall
from trainlaunch.plan.launch_plan import Derived, LaunchPlan, SharedMemory
from trainlaunch.plan.lock_overrides import fresh_probe, fresh_tune, start_method_derivation
from trainlaunch.plan.shm_sum_text import multi_epoch_derivation, need_derivation
from trainlaunch.plan.workers_and_threads import alike
from trainlaunch.rules import check_plan
from trainlaunch.sanitize import shorten
from trainlaunch.units import counted, format_cpus, format_duration, format_size, human_size, needed_size

_SHOWN_ANYWAY = {"shm_size", "resources.cpus", "resources.memory", "resources.gpus"}
USAGE = Usage(
    examples=(
        "trainlaunch plan job.yaml",
        "trainlaunch plan job.yaml --why",
        "trainlaunch plan job.yaml --target kubernetes --set data_loader.num_workers=8",
        "trainlaunch plan job.yaml -o json",
    ),
    exit_codes=CONTRACT_EXIT_CODES,
    arguments=(
        *job_arguments(usual=True),
        argument("--why", action="store_true", help="every number, what it follows from and where that is set"),
        OUTPUT_ARGUMENT,
    ),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Print the plan."""
    plan = plan_of(args)
    if args.output == "json":
        streams.result(document(plan_document(plan)))
        return 0
    found, columns = check_plan(plan), columns_of(streams.out)
    if args.why:
        streams.show("\n".join(_table(list(_rows(plan)), columns or WIDTH)) + "\n")
    else:
        streams.show(summary(plan, found, columns))
    say_findings(found, streams, least=Severity.INFO)
    return 0


_START_METHOD = "data_loader.multiprocessing_context"


def _rows(plan: LaunchPlan) -> Iterator[tuple[str, str, str, str]]:
    """Yield (what, value, derivation, origin)."""
    job, shm = plan.job, plan.shm
    yield "job", plan.name, f"target {plan.target}", job.path
    yield from _policy_rows(plan)
    if plan.nodes > 1:
        yield "nodes", str(plan.nodes), "containers, each with all that follows", str(job.origin("torchrun.nnodes"))
    yield from _locked_rows(plan)
    if job.patch is not None:
        count = len(job.patch.flags or job.patch.leaves or job.patch.operations)
        yield "patch", str(count), f"changes of the {plan.target} file", str(job.origin(f"patches.{plan.target}"))
    yield from _code_rows(plan)
    if job.resources.cpus is not None:
        yield "cpus", format_cpus(job.resources.cpus), "", str(job.origin("resources.cpus"))
    if plan.memory.limit is not None:
        yield "memory", format_size(plan.memory.limit), "limit, /dev/shm included", str(job.origin("resources.memory"))
    if plan.gpus:
        yield "gpus", ALL_GPUS if plan.gpus.all else str(plan.gpus.count), ",".join(plan.gpus.ids), _gpu_origin(plan)
    yield _derived("ranks", plan.ranks)
    yield from _shutdown_rows(plan)
    yield _derived("num_workers", plan.num_workers)
    if any(each.workers for each in shm.loaders):
        origin = str(job.origin(_START_METHOD))
        yield "start method", job.data_loader.multiprocessing_context, start_method_derivation(job), origin
    need = f"{'≥ ' * shm.unsized}{needed_size(shm.need)}"
    sized_by = str(_sized_by(plan))
    yield "shm peak", need, need_derivation(job, shm, plan.ranks.value), sized_by
    lasting = multi_epoch_derivation(job, shm, plan.ranks.value)
    if shm.multi_epoch > shm.need:
        yield "multi-epoch", needed_size(shm.multi_epoch), lasting, sized_by
    yield "shm_size", format_size(shm.size.value), shm.size.derivation, shm.size.origin
    working = plan.memory.working_set
    yield "processes", human_size(working.value), working.derivation, working.origin
    yield from _thread_rows(plan)
    yield from _inside_rows(plan)


def _sized_by(plan: LaunchPlan) -> Origin:
    """Return where the bytes of batches come from: the lock where a probe measured one, else data_loader."""
    fields = (f"data_loader.loaders.{each.name}.storages" for each in plan.job.data_loader.loaders)
    measured = (plan.job.origins[each] for each in fields if each in plan.job.origins)
    return next(measured, plan.job.origin("data_loader"))


def _code_rows(plan: LaunchPlan) -> Iterator[tuple[str, str, str, str]]:
    """Yield the code that a rendered file brings to a cluster."""
    for index, folder in plan.job.code.items():
        mount = plan.job.mounts[index]
        source = shorten(str(mount.source))
        whose = f"that git tracks in {source}" if folder.by_git else f"of {source}, which is in no git repository"
        told = f"{counted(len(folder.files), 'file')} {whose}, at {shorten(mount.target)}"
        yield "code", human_size(folder.size), told, str(plan.job.origin(f"mounts.{index}.source"))


def _shutdown_rows(plan: LaunchPlan) -> Iterator[tuple[str, str, str, str]]:
    """Yield how long torchrun's ranks may save their work, where that is longer than an older torchrun lets them."""
    shutdown = shutdown_timeout(plan)
    if shutdown is not None and shutdown.value > USUAL:
        told = f"{shutdown.derivation}, as long as ranks may save; torchrun before 2.13 kills them after {USUAL} s"
        yield "shutdown", format_duration(shutdown.value), told, shutdown.origin


def _policy_rows(plan: LaunchPlan) -> Iterator[tuple[str, str, str, str]]:
    """Yield the policies and what they give; a value that a policy limits says so in its own row."""
    policy = plan.job.policy
    if policy is None:
        return
    for index, file in enumerate(policy.files):
        ceilings = ", ".join(f"max.{name}" for name, limit in policy.max.items() if limit.span.file == file)
        yield "policy", "in force" if index == 0 else "above it", ceilings, file
    for each in policy.given:
        if each.field not in _SHOWN_ANYWAY:
            what = "default of the policy" if each.profile is None else f"profile {each.profile}"
            yield each.field, shorten(each.value), what, _place(plan, each)


def _place(plan: LaunchPlan, given: PolicyValue) -> str:
    """Return where a given value stands: its origin, or the file that added it to a list that the job sets."""
    origin = plan.job.origin(given.field)
    return str(origin) if origin.kind in {"policy", "profile"} else f"{given.file} (added to {origin})"


def _locked_rows(plan: LaunchPlan) -> Iterator[tuple[str, str, str, str]]:
    """Yield what the lock fills in."""
    job = plan.job
    for field, value in (("image", job.image), ("image_entrypoint", shlex.join(job.image_entrypoint or ()) or "none")):
        if job.origin(field).kind == "lock":
            yield field, "locked", value, str(job.origin(field))
    probe = fresh_probe(job)
    if probe is None:
        return
    ran = f"; loaders ran {probe.loaders_run}" if len(probe.loaders) > 1 else ""
    took = f"measured on {probe.target} with torch {shorten(probe.torch)}{ran}"
    yield "probe", "fresh", took, str(Origin(KIND, probe.span))
    for need, spec, seen in zip(plan.shm.loaders, job.data_loader.loaders, probe.loaders, strict=True):
        if spec.storages is not None:
            took = f"{spec.name} at {shorten(seen.at)}: {counted(need.tensors, 'tensor')}, {spec.batches_held} in use"
            yield "batch", human_size(need.unit), took, str(job.origin(f"data_loader.loaders.{spec.name}.storages"))


def _thread_rows(plan: LaunchPlan) -> Iterator[tuple[str, str, str, str]]:
    """Yield one row for all variables that share a number and its derivation."""
    for threads, names in alike(plan.threads).items():
        yield "threads", str(threads.value), f"{threads.derivation}: {' '.join(names)}", threads.origin
    if not plan.threads and plan.job.data_loader.inject != "off":
        yield "threads", "auto", "set by the preflight from the CPUs that it finds", "resources.cpus is not set"


def _inside_rows(plan: LaunchPlan) -> Iterator[tuple[str, str, str, str]]:
    """Yield what runs inside the job's own processes."""
    if HEARTBEAT in plan.inside.parts:
        latest, ends = format_duration(latest_stall(plan.job)), "stopped" if plan.job.healthcheck.stops else "told"
        told = f"the longest wait of a rank for one batch, which its DataLoader notes; {ends} {latest} after the last"
        told += " at the latest"
        longest = format_duration(plan.job.healthcheck.stall_after or 0)
        yield "stall_after", longest, told, str(plan.job.origin("healthcheck.stall_after"))
    if WORKERS in plan.inside.parts:
        most = counted(len(plan.job.data_loader.loaders), "DataLoader")
        inject = plan.job.data_loader.inject
        stated = "whatever is set there" if inject == OVERRIDING else "where none is set"
        told = f"given to at most {most} of the script, {stated}; results differ from those without workers"
        yield "inject", inject, told, str(plan.job.origin("data_loader.inject"))
    if DATA_WAIT in plan.inside.parts:
        yield "observe", "true", "its processes note how long they wait for data", str(plan.job.origin("observe"))


def _derived(name: str, number: Derived) -> tuple[str, str, str, str]:
    return name, str(number.value), number.derivation, number.origin


def _gpu_origin(plan: LaunchPlan) -> str:
    return str(plan.job.origin("resources.gpus"))


def _table(rows: list[tuple[str, str, str, str]], columns: int) -> Iterator[str]:
    """Yield lines `what  value  = derivation  (origin)`, wrapped below their derivation."""
    names, values = (max(len(row[column]) for row in rows) for column in (0, 1))
    for name, value, derivation, origin in rows:
        told = f"= {derivation}  " if derivation else ""
        line = f"{name:<{names}}  {value:<{values}}  {told}({origin})"
        yield wrapped(line, columns, names + values + len("    = "))


def plan_document(plan: LaunchPlan) -> dict[str, object]:
    """Return what `plan -o json` says: bytes, counts and seconds as integers, CPUs as a decimal string."""
    job, shm, vendor = plan.job, plan.shm, plan.job.resources.gpu_vendor
    return {
        "job": job.name,
        "name": plan.name,
        "target": plan.target,
        "file": job.path,
        "image": job.image or None,
        "image_entrypoint": job.image_entrypoint,
        "argv": list(plan.argv),
        "nodes": plan.nodes,
        "ranks": plan.ranks.value,
        "num_workers": plan.num_workers.value,
        "auto_workers": plan.auto_workers,
        "start_method": job.data_loader.multiprocessing_context,
        "cpus": None if job.resources.cpus is None else format_cpus(job.resources.cpus),
        "memory": {"limit": plan.memory.limit, "working_set": plan.memory.working_set.value},
        "gpus": {"count": plan.gpus.count, "ids": list(plan.gpus.ids), "all": plan.gpus.all, "vendor": vendor},
        "shm": _shm_document(shm),
        "code": [
            {"target": job.mounts[index].target, "size": each.size, "sha256": each.digest, "files": len(each.files)}
            for index, each in job.code.items()
        ],
        "threads": {name: threads.value for name, threads in plan.threads},
        "measured": _measured_document(plan),
        "derivations": _derivations(plan),
        "policies": list(plan.job.policy.files) if plan.job.policy else [],
        "profile": plan.job.profile,
        "origins": {field: str(origin) for field, origin in job.origins.items()},
        "findings": as_json(check_plan(plan)),
    }


def _shm_document(shm: SharedMemory) -> dict[str, object]:
    return {
        "need": shm.need,
        "multi_epoch": shm.multi_epoch,
        "worst_case": shm.worst_case,
        "size": shm.size.value,
        "unsized": shm.unsized,
        "loaders": [
            {
                "name": each.name,
                "num_workers": each.workers,
                "prefetch_factor": each.prefetch_factor,
                "batches_held": each.batches_held,
                "batch_bytes": each.unit,
                "tensors": each.tensors,
                "need": each.need,
                "worst_case": each.worst_case,
            }
            for each in shm.loaders
        ],
    }


def _measured_document(plan: LaunchPlan) -> dict[str, str | None]:
    """Return of each part of the lock that was measured whether it is `fresh` or `stale`; None where there is none."""
    measured = plan.job.measured
    probe = None if measured is None or measured.probe is None else fresh_probe(plan.job) is not None
    tune = None if measured is None or measured.tune is None else fresh_tune(plan.job) is not None
    words = {True: "fresh", False: "stale", None: None}
    return {"probe": words[probe], "tune": words[tune]}


def _derivations(plan: LaunchPlan) -> dict[str, dict[str, str]]:
    job, shm, ranks = plan.job, plan.shm, plan.ranks.value
    origin = _sized_by(plan)
    sized_by = str(origin) if origin.kind == KIND else "data_loader"
    numbers = {
        "ranks": plan.ranks,
        "num_workers": plan.num_workers,
        "shm.size": plan.shm.size,
        "shm.need": Derived(shm.need, need_derivation(job, shm, ranks), sized_by),
        "shm.multi_epoch": Derived(shm.multi_epoch, multi_epoch_derivation(job, shm, ranks), sized_by),
        "memory.working_set": plan.memory.working_set,
        **{f"threads.{name}": threads for name, threads in plan.threads},
    }
    told = {name: {"derivation": each.derivation, "origin": each.origin} for name, each in numbers.items()}
    origin = job.origin(_START_METHOD)
    told["start_method"] = {"derivation": start_method_derivation(job), "origin": str(origin)}
    for field in ("image", "image_entrypoint"):
        origin = plan.job.origin(field)
        derivation = {"lock": "locked", "default": "not set"}.get(origin.kind, "set")
        told[field] = {"derivation": derivation, "origin": str(origin)}
    return told
