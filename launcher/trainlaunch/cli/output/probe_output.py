"""What `trainlaunch probe` prints: a table of loaders, what is wrong with them, and what the plan takes from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from trainlaunch.cli.output.report import as_json, help_line
from trainlaunch.cli.output.streams import table, wrapped
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import JobFileRejected
from trainlaunch.job.loader_spec import ProbeMeasurement
from trainlaunch.job.reading.lock_reader import lock_path
from trainlaunch.measure.finding import ProbeFinding
from trainlaunch.measure.findings import diagnosed
from trainlaunch.measure.loader_records import LoaderRecord, Measurement
from trainlaunch.measure.probe_lock import host_findings, stated_lines, with_probe
from trainlaunch.plan.launch_plan import LaunchPlan, SharedMemory
from trainlaunch.plan.lock_overrides import measuring_command
from trainlaunch.plan.shm_sum_text import need_words
from trainlaunch.rules import plan_job
from trainlaunch.sanitize import one_line
from trainlaunch.units import counted, format_size, human_size, needed_size

WIDTH = 80
_HEAD = ("loader", "workers", "batch", "tensors", "in use", "fetch", "wait", "step")


class ShmWithProbe(NamedTuple):
    """/dev/shm as it is planned once the lock has the probe; None, and what the plan then has against it."""

    shm: SharedMemory | None
    refused: tuple[Diagnostic, ...] = ()


class ProbeResult(NamedTuple):
    """One probe: the job's own `plan`, what was seen, and what the lock keeps of it (None: not enough was seen).

    `written` is the lock, None where nothing was written. `problems` kept loaders from being measured.
    """

    plan: LaunchPlan
    measured: Measurement
    probe: ProbeMeasurement | None
    written: Path | None
    problems: tuple[Diagnostic, ...]

    @property
    def findings(self) -> tuple[tuple[ProbeFinding, Diagnostic], ...]:
        """What is wrong with the script, in words, the most severe first."""
        found = (*host_findings(self.plan.job, self.measured), *self.measured.findings)
        said = [(each, diagnostic) for each in found if (diagnostic := diagnosed(each)) is not None]
        order = ("error", "warning", "info")
        return tuple(sorted(said, key=lambda each: order.index(each[1].severity.value)))

    def taken(self) -> ShmWithProbe:
        """Return what the plan takes from the probe."""
        if self.probe is None:
            return ShmWithProbe(None)
        try:
            return ShmWithProbe(plan_job(with_probe(self.plan.job, self.probe)).shm)
        except JobFileRejected as rejected:
            return ShmWithProbe(None, rejected.diagnostics)


def as_text(result: ProbeResult) -> str:
    """Return the result for people, at most 80 columns wide."""
    parts = [_loaders(result), *map(_finding, result.findings), *(_framed("", each) for each in result.problems)]
    notes = [f"not looked for: {each}" for each in result.measured.off]
    notes += [
        f"not known here: {each.defect}, which a part of another release reports"
        for each in result.measured.findings
        if diagnosed(each) is None
    ]
    parts += ["".join(_wrapped(each) + "\n" for each in notes)] * bool(notes)
    if result.measured.loaders:
        parts.append("\n".join(_kept(result)) + "\n")
    return "\n".join(filter(None, parts))


def _loaders(result: ProbeResult) -> str:
    """Return the table."""
    measured, plan = result.measured, result.plan
    if not measured.loaders:
        return ""
    trains = next((each for each in measured.loaders if each.trains), measured.loaders[0])
    head = f"{counted(trains.batches, 'batch')} in {measured.seconds:.1f} s"
    head += "" if measured.checks_seconds is None else f", checks {measured.checks_seconds:.1f} s"
    alive = f", {_alive(result)}" if len(measured.loaders) > 1 else ""
    about = f"{plan.job.name} on {plan.target}: {head}, torch {measured.torch}, {trains.start_method}{alive}"
    rows = [_HEAD, *(_row(each) for each in measured.loaders)]
    legend = "* trains; fetch, wait and step are medians; batch is the largest"
    legend += ", and smaller ones came" if any(each.varying for each in measured.loaders) else ""
    return f"{_wrapped(about)}\n\n{table(rows, shrinking=1)}\n{_wrapped(legend)}\n"


def _alive(result: ProbeResult) -> str:
    """Return which loaders are counted at the same time."""
    if result.probe is not None and result.probe.loaders_run == "in_turn":
        return "in turn"
    seen = any(each.together_with for each in result.measured.loaders)
    return "alive together" if seen else "counted as alive together"


def _row(seen: LoaderRecord) -> tuple[str, ...]:
    storages = seen.storages
    return (
        seen.at + " *" * seen.trains,
        str(seen.num_workers),
        "none" if storages is None else human_size(sum(storages)),
        "" if storages is None else str(len(storages)),
        "" if seen.batches_held is None else str(seen.batches_held),
        *map(_time, (seen.fetch_seconds, seen.wait_seconds, seen.step_seconds)),
    )


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _finding(found: tuple[ProbeFinding, Diagnostic]) -> str:
    finding, said = found
    return _framed(finding.place, said)


def _framed(place: str, said: Diagnostic) -> str:
    """Return a finding as a frame of at most 80 columns."""
    lines = [_wrapped(f"{said.severity.value}[{said.code}]: {said.message}")]
    lines += [f"  --> {one_line(place)}"] * bool(place)
    lines += [_wrapped(f"   = {name}: {text}", 8) for name, text in (("why", said.why), ("fix", said.fix)) if text]
    return "\n".join([*lines, help_line(said.code)]) + "\n"


def _kept(result: ProbeResult) -> Iterator[str]:
    """Yield what comes of it: the size that the plan takes, and how it gets there."""
    plan, probe = result.plan, result.probe
    if probe is None:
        yield _wrapped(_why_nothing(result))
        return
    shm, refused = result.taken()
    for each in refused:
        yield _framed("", each)
    if shm is not None:
        most = f", upper bound {needed_size(shm.worst_case)}" if shm.need else ""
        before = "unsized " if plan.shm.unsized else ""
        yield _wrapped(
            f"shm_size is then {format_size(shm.size.value)} (now: {before}{format_size(plan.shm.size.value)}); "
            f"{need_words(shm)}{most}"
        )
    if result.written is not None:
        yield _wrapped(f"wrote {result.written}: plan, render and up use it while the job stays the same")
        return
    typed, lock = measuring_command("probe", plan.job, plan.target), lock_path(Path(plan.job.path)).name
    yield _wrapped(f"`{typed}` keeps it in {lock}, or set")
    yield from stated_lines(plan.job, probe)


def _why_nothing(result: ProbeResult) -> str:
    silent = [each for each in result.measured.loaders if each.storages is None]
    if silent and len(result.measured.loaders) == len(result.plan.job.data_loader.loaders):
        problem = f": {silent[0].problem}" if silent[0].problem else ""
        return f"nothing is kept, since {silent[0].at} gave no batch{problem}"
    if len(result.measured.loaders) < len(result.plan.job.data_loader.loaders):
        return "nothing is kept, since a loader of the job file was not read"
    return "nothing is kept, since it can't be told which loader of the job file is which of the script"


def _wrapped(text: str, indent: int = 0) -> str:
    return wrapped(one_line(text), WIDTH, indent)


def as_document(result: ProbeResult) -> dict[str, Any]:
    """Return what `-o json` says; bytes and counts as integers, times in seconds."""
    shm, refused = result.taken()
    numbers = None
    if shm is not None:
        sizes = {"need": shm.need, "multi_epoch": shm.multi_epoch, "worst_case": shm.worst_case}
        numbers = {**sizes, "size": shm.size.value}
    measured = result.measured
    found = [
        {
            **_json(said),
            "defect": finding.defect,
            "loader": finding.loader,
            "place": finding.place,
            "facts": dict(finding.facts),
        }
        for finding, said in result.findings
    ]
    no_defect: dict[str, Any] = {"defect": None, "loader": None, "place": "", "facts": {}}
    return {
        "job": result.plan.job.name,
        "target": result.plan.target,
        "ended": measured.reason or None,
        "seconds": measured.seconds,
        "checks_seconds": measured.checks_seconds,
        "loaders": [_loader_json(each) for each in measured.loaders],
        "findings": [*found, *({**_json(each), **no_defect} for each in result.problems)],
        "not_looked_for": list(measured.off),
        "probe": None if result.probe is None else _probe_json(result.probe),
        "shm": numbers,
        "refused": as_json(refused),
        "written": None if result.written is None else str(result.written),
    }


def _json(said: Diagnostic) -> dict[str, Any]:
    facts = dict(as_json([said])[0])
    return {name: facts[name] for name in ("code", "severity", "message", "why", "fix")}


def _loader_json(seen: LoaderRecord) -> dict[str, Any]:
    facts = seen._asdict()
    storages = seen.storages
    return {**facts, "storages": None if storages is None else list(storages), "varying": seen.varying}


def _probe_json(probe: ProbeMeasurement) -> dict[str, Any]:
    """Return the part of the lock as plain values, in the lock's own words."""
    loaders = [
        {
            "at": each.at,
            "num_workers": each.num_workers,
            "batches_held": each.batches_held,
            **({} if each.batches_kept is None else {"batches_kept": each.batches_kept}),
            **({"against_workers": list(each.against_workers)} if each.against_workers else {}),
            "batch": {"storages": list(each.storages), **({"varying": True} if each.varying else {})},
        }
        for each in probe.loaders
    ]
    facts = probe._asdict()
    del facts["span"]
    return {**facts, "loaders": loaders}
