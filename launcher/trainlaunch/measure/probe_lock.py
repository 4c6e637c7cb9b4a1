"""From what was seen of a script to what its lock keeps: which loader is which, and what the plan takes from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from trainlaunch.job.loader_spec import LoaderSpec, ProbedLoader, ProbeMeasurement
from trainlaunch.job.spec import JobSpec, Measured
from trainlaunch.measure.finding import ProbeFinding
from trainlaunch.measure.loader_records import LoaderRecord, Measurement
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.lock_overrides import input_of, states
from trainlaunch.plan.shared_memory import IN_TURN, PAGE
from trainlaunch.units import KIB, format_size, round_up

LOADERS_DIFFER = "loaders-differ"
# What a loader gets by its workers: wrong samples, the same draws again, a wait without end, a /dev/shm that fills.
AGAINST_WORKERS = frozenset(
    {
        "handle-in-init",
        "kept-batches",
        "repeated-augmentation",
        "repeated-epochs",
        "stale-dataset",
        "threads-before-fork",
        "worker-dependent-samples",
        "worker-hang",
    }
)
DEFAULT_SECONDS = 60  # of a probe
LONGEST_EPOCH, TIMES_LONGER = 600.0, 2.0  # seconds of one that is waited for, as medians tell it, which isn't all
MAX_STORAGES = 1000  # of one loader: a lock with 10,000 values can't be read


def assigned(job: JobSpec, seen: Sequence[LoaderRecord]) -> tuple[LoaderRecord, ...]:
    """Return the loaders of the script in the order of the job's: first the one that trains.

    The others by their batch_size where it tells them apart, else as the script first loops over them. Nothing where
    the numbers differ.
    """
    stated = job.data_loader.loaders
    if len(seen) != len(stated) or not seen:
        return ()
    by_turn = sorted(seen, key=lambda each: (each.order is None, each.order or 0, each.number))
    first = next((each for each in by_turn if each.trains), by_turn[0])
    left = [each for each in by_turn if each is not first]
    found: dict[str, LoaderRecord] = {}
    for loader in stated[1:]:
        same = [each for each in left if loader.batch_size is not None and each.batch_size == loader.batch_size]
        alike = [each for each in stated[1:] if each.batch_size == loader.batch_size]
        if len(same) == len(alike) == 1:
            found[loader.name] = same[0]
    left = [each for each in left if each not in found.values()]
    return (first, *(found.get(each.name) or left.pop(0) for each in stated[1:]))


def host_findings(job: JobSpec, measured: Measurement) -> tuple[ProbeFinding, ...]:
    """Return what is wrong between the script and its job file."""
    stated, seen = job.data_loader.loaders, measured.loaders
    if not seen or len(seen) == len(stated):
        return ()
    places = list(dict.fromkeys(each.at for each in seen))
    facts = {"seen": len(seen), "stated": len(stated), "names": [each.name for each in stated], "places": places}
    if len(seen) < len(stated) and measured.reason in {"batches", "seconds"}:
        facts |= _further(seen)
    return (ProbeFinding(LOADERS_DIFFER, None, "", facts),)


def _further(seen: Sequence[LoaderRecord]) -> dict[str, object]:
    """Return the flags by which a probe comes to loaders that are built after the first epoch, and why."""
    trains = next((each for each in seen if each.trains), seen[0])
    epoch, each = trains.epoch_batches, (trains.wait_seconds or 0.0) + (trains.step_seconds or 0.0)
    facts = {"batches": trains.batches, "epoch": epoch, "at": trains.at}
    if not epoch or not each or epoch * each > LONGEST_EPOCH:
        return {**facts, "flags": "--through"}
    longer = math.ceil(epoch * each * TIMES_LONGER)
    seconds = f" --seconds {longer}" if longer > DEFAULT_SECONDS else ""
    return {**facts, "flags": f"--batches {epoch + 1}{seconds}"}


def probe_of(plan: LaunchPlan, measured: Measurement, workers: int | None) -> ProbeMeasurement | None:
    """Return what the lock of the plan's job keeps of a measurement; None where a loader or a batch is missing.

    `plan` is that of the job itself. `workers` is the automatic number of workers that the preflight gave in the
    place of the plan's, None where it gave that one.
    """
    job = plan.job
    loaders = assigned(job, measured.loaders)
    if not loaders or any(each.storages is None for each in loaders):
        return None
    pairs = list(zip(job.data_loader.loaders, loaders, strict=True))
    auto = plan.num_workers.value if workers is None else workers
    together = _together(loaders, job.data_loader.loaders_run)
    tensors = [each.dataset_tensor_bytes for each in loaders]
    return ProbeMeasurement(
        input=input_of(job),
        forced_input=input_of(job, tuned=True),
        target=plan.target,
        torch=measured.torch,
        python=measured.python,
        start_method=loaders[0].start_method,
        loaders_run="together" if together else "in_turn",
        batches_seen=loaders[0].batches,
        loaders=tuple(
            _probed(job, spec, each, auto)._replace(**_found(spec, each, measured.findings)) for spec, each in pairs
        ),
        dataset_tensor_bytes=sum(tensors) if together else max(tensors),
    )


def _found(spec: LoaderSpec, seen: LoaderRecord, findings: Sequence[ProbeFinding]) -> dict[str, Any]:
    """Return what findings say of a loader: a number of batches that grows with each is no number to plan with."""
    against = _against(seen, findings)
    grows = {"batches_held": spec.batches_held, "batches_kept": None} if "kept-batches" in against else {}
    return {"against_workers": against, **grows}


def _against(seen: LoaderRecord, findings: Sequence[ProbeFinding]) -> tuple[str, ...]:
    """Return the defects of a loader, or of the whole script, that workers bring out.

    Loaders of other processes have the same numbers and other places.
    """
    mine = ((seen.number, seen.at), (seen.number, ""), (None, ""))
    own = [each for each in findings if (each.loader, "" if each.loader is None else each.place) in mine]
    return tuple(sorted({each.defect for each in own if each.defect in AGAINST_WORKERS or _loses_batches(each)}))


def _loses_batches(finding: ProbeFinding) -> bool:
    return finding.defect == "unpicklable" and finding.facts.get("part") == "batch"


def _together(loaders: Sequence[LoaderRecord], planned: str) -> bool:
    """Return whether loaders were alive at the same time, or may be: where neither was seen, what the job plans.

    One that no loop was seen of, or whose loop was not seen to end, may be with any other, and so may one that an epoch
    of training begins in its middle, unless such an epoch was seen to its end.
    """
    if len(loaders) == 1 or any(each.together_with for each in loaders):
        return True
    trains = next((each for each in loaders if each.trains), loaders[0])
    seen_apart = all(each.ended and each.order is not None for each in loaders)
    return planned != IN_TURN and not (seen_apart and trains.whole_epochs)


def _probed(job: JobSpec, spec: LoaderSpec, seen: LoaderRecord, auto: int) -> ProbedLoader:
    """Return one loader, with what the script sets itself: other than what the job's plan gives to it."""
    planned = auto if spec.num_workers is None else spec.num_workers
    prefetch = seen.prefetch_factor if seen.num_workers else None
    persistent = seen.persistent_workers if seen.num_workers else None
    return ProbedLoader(
        at=seen.at,
        num_workers=seen.num_workers,
        batches_held=max(1, seen.batches_held or spec.batches_held),
        storages=_bounded(seen.storages or ()),
        varying=seen.varying,
        batches_kept=seen.batches_kept,
        own_workers=seen.num_workers if seen.num_workers != planned else None,
        own_prefetch=prefetch if prefetch != spec.prefetch_factor else None,
        own_persistent=persistent if persistent != spec.persistent_workers else None,
    )


def _bounded(storages: tuple[int, ...]) -> tuple[int, ...]:
    """Return storages that take the same pages and aren't too many: several small ones then stand as one."""
    if len(storages) <= MAX_STORAGES:
        return storages
    by_size = sorted((round_up(each, PAGE) for each in storages), reverse=True)
    return tuple(sum(by_size[start::MAX_STORAGES]) for start in range(MAX_STORAGES))


def with_probe(job: JobSpec, probe: ProbeMeasurement) -> JobSpec:
    """Return the job as it is planned once its lock has `probe`."""
    tune = job.measured.tune if job.measured else None
    return job._replace(measured=Measured(probe, tune, job))


def stated_lines(job: JobSpec, probe: ProbeMeasurement) -> list[str]:
    """Return the lines that set in the job file what was measured, where the job leaves it open."""
    loaders, lines = job.data_loader.loaders, ["data_loader:"]
    for field, value in {"loaders_run": probe.loaders_run, "multiprocessing_context": probe.start_method}.items():
        if not states(job, None, field) and value not in {"together", "fork"}:
            lines.append(f"  {field}: {value}")
    indent = "  "
    if len(loaders) > 1:
        lines.append("  loaders:")
        indent = "      "
    for spec, each in zip(loaders, probe.loaders, strict=True):
        lines += [f"    {spec.name}:"] * (len(loaders) > 1)
        size = format_size(round_up(sum(each.storages), KIB))
        batch = f"batch_bytes: {{size: {size}, tensors: {len(each.storages)}}}" if each.storages else "collate: none"
        facts = {
            "batches_held": max(each.batches_held, (each.batches_kept or 0) + 1),  # no field says what is kept
            "num_workers": each.own_workers,
            "prefetch_factor": each.own_prefetch,
            "persistent_workers": None if each.own_persistent is None else str(each.own_persistent).lower(),
        }
        lines.append(indent + batch)
        lines += [f"{indent}{field}: {value}" for field, value in facts.items() if value is not None]
    return lines
