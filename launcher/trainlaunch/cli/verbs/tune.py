"""`trainlaunch tune`: run the job's script with several settings of its DataLoader, and say which is fastest."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from trainlaunch.cli.arguments.job_arguments import job_of, plan_of, refuse_place_elsewhere
from trainlaunch.cli.arguments.measuring import (
    keep_tune,
    measuring_arguments,
    measuring_fields,
    refuse_unwritable_lock,
)
from trainlaunch.cli.arguments.run_argument import store_of_plan
from trainlaunch.cli.arguments.verb_table import Usage, argument
from trainlaunch.cli.output.report import as_json, document, framed
from trainlaunch.cli.output.streams import Streams, style_of, wrapped
from trainlaunch.cli.output.write_files import refuse_unwritable, replace_file
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import JobFileRejected, LaunchError, UsageError
from trainlaunch.exit_codes import EXIT_FINDINGS
from trainlaunch.job.loader_spec import Tune
from trainlaunch.job.spec import JobSpec, Origin
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.lock_overrides import MATH, fresh_tune, input_of, states
from trainlaunch.rules.sources.deciding_workers import UNKNOWN, deciding_workers
from trainlaunch.units import UnreadableValue, format_duration, parse_duration

if TYPE_CHECKING:
    from trainlaunch.inside.tune.task import Setting
    from trainlaunch.measure.tune.result import Tuned
BUDGET = "3m"
MIN_SECONDS = 20  # seconds: a process must start and time some settings
MAX_SECONDS = 24 * 3600
WHAT_RUNS = """\
The job's own script, its training steps included, on the job's target and
within its CPU and memory limits. It runs once, or once for each setting
where its loop can't be given another one, then once or twice more to
confirm the result. A run is ended once it has told enough: what the script
saves at the end of training it doesn't save, but evaluation and checkpoints
of epochs that end sooner do run. It takes the budget, and a minute more
where the script starts slowly."""
USAGE = Usage(
    examples=(
        "trainlaunch tune job.yaml",
        "trainlaunch tune job.yaml --budget 10m --write --html tune.html",
    ),
    exit_codes="0 timed, 1 nothing could be timed or compared, or a bad job file, 2 usage, 3 target unavailable, "
    "70 an internal error, 130 interrupted",
    arguments=measuring_arguments(
        WHAT_RUNS,
        argument(
            "--budget",
            default=BUDGET,
            metavar="TIME",
            help=f"how long it may take, like 90s or 10m (default: {BUDGET})",
        ),
        argument("--html", type=Path, metavar="FILE", help="write a page with plots, one file that needs no other"),
    ),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Time, tell, keep."""
    from trainlaunch.measure.tune.trial import refusal

    budget = _seconds(args.budget)
    plan = plan_of(args)
    refuse_place_elsewhere(args, plan.target)
    refused = refusal(plan)
    if refused is not None:
        raise JobFileRejected([refused])
    if args.html is not None:
        _refuse_alien(args.html)
        refuse_unwritable(args.html)
    if args.write:
        refuse_unwritable_lock(Path(args.job))
    tuned = _tuned(args, plan, streams, budget)
    written, failed = _saved(args, plan, tuned, streams)
    _tell(tuned, WrittenResult(plan, written, failed), args, streams)
    return failed.exit_code if failed else 0 if tuned.compared else EXIT_FINDINGS


def _seconds(text: str) -> int:
    """Return the budget in seconds. Raises UsageError for what is none, or too short."""
    try:
        seconds = parse_duration(text)
    except UnreadableValue as wrong:
        raise UsageError([Diagnostic("TL118", f"--budget: {wrong}", wrong.fix)]) from wrong
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        short = seconds < MIN_SECONDS
        bound = f"below {format_duration(MIN_SECONDS)}" if short else f"above {format_duration(MAX_SECONDS)}"
        why = "the script must start, and some settings must be timed" if short else "no search takes so long"
        raise UsageError([Diagnostic("TL118", f"--budget {text} is {bound}", f"write --budget {BUDGET}", why=why)])
    return seconds


def _refuse_alien(path: Path) -> None:
    """Raise UsageError, before anything runs, where --html names a file that `tune` has not written, or no file."""
    from trainlaunch.measure.tune.html_report import is_report

    problem = ""
    try:
        if path.is_dir() or not path.absolute().parent.is_dir():
            problem = "is a folder" if path.is_dir() else "is in a folder that does not exist"
        elif path.exists() and not (path.is_file() and is_report(_head(path))):
            problem = "exists, and is no page that `trainlaunch tune` wrote"
    except OSError as cause:
        problem = f"can't be read: {cause.strerror or cause}"
    if problem:
        raise UsageError([Diagnostic("TL118", f"--html: {path} {problem}", "name another file")])


def _head(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(4096).decode(errors="replace")


def _tuned(args: argparse.Namespace, plan: LaunchPlan, streams: Streams, budget: int) -> Tuned:
    from trainlaunch.cli.verbs.tune_runs import Progress, Runs
    from trainlaunch.measure.tune.tuning import Plans, Tuning, limited_space

    ours = measuring_fields(args, plan, "tune", budget)

    def plan_with(setting: Setting) -> LaunchPlan | None:
        return _fitting(args, _setting_sets(plan, setting))

    def measuring_with(setting: Setting) -> LaunchPlan | None:
        return _fitting(args, [*_setting_sets(plan, setting), *ours])

    plans = Plans(plan, plan_with, _with_sets(args, ours), measuring_with)
    progress = Progress(streams, budget, plan.ranks.value)
    with store_of_plan(args, plan) as store, progress:
        runs = Runs(args, progress.say, store, plan.job.name)
        tuning = Tuning(plans, limited_space(plan, plan_with), runs.start, budget=budget)
        tuning.begins, tuning.times, tuning.seen = progress.begins, progress.times, progress.seen
        return tuning.run()


def _setting_sets(plan: LaunchPlan, setting: Setting) -> list[str]:
    """Return, as --set takes it, a setting of the loader that trains, which is the job's first."""
    values = {"num_workers": str(setting.num_workers)}
    if setting.num_workers:
        values["prefetch_factor"] = str(setting.prefetch_factor)
    if setting.pin_memory is not None:
        values["pin_memory"] = str(setting.pin_memory).lower()
    trains = plan.job.data_loader.loaders[0].name
    threads = [] if setting.threads is None else [f"env.{name}={setting.threads}" for name in MATH]
    return [*(f"{plan.job.loader_field(trains, name)}={value}" for name, value in values.items()), *threads]


def _with_sets(args: argparse.Namespace, sets: Sequence[str]) -> LaunchPlan:
    """Return the job's plan with these sets as the last. Raises JobFileRejected where it has errors then."""
    return plan_of(argparse.Namespace(**{**vars(args), "sets": [*args.sets, *sets], "name": None}))


def _fitting(args: argparse.Namespace, sets: Sequence[str]) -> LaunchPlan | None:
    """Return the job's plan with a setting; None where the job can't have it."""
    try:
        return _with_sets(args, sets)
    except JobFileRejected:
        return None


def _saved(
    args: argparse.Namespace, plan: LaunchPlan, tuned: Tuned, streams: Streams
) -> tuple[Path | None, LaunchError | None]:
    """Write lock and page where they are asked for; return the lock, and why one can't be written."""
    from trainlaunch.measure.tune.html_report import report

    written = None
    try:
        written = _kept(args, plan, tuned) if args.write and tuned.compared else None
        if args.html is not None:
            replace_file(args.html, report(tuned))
            streams.say(f"wrote {args.html}")
    except LaunchError as failed:
        return written, failed
    return written, None


def _kept(args: argparse.Namespace, plan: LaunchPlan, tuned: Tuned) -> Path:
    """Keep the result in the lock beside the job file and return its path."""
    best = tuned.best
    job, own = plan.job, tuned.own_threads
    usable = None if job.resources.cpus else max(1, int(tuned.loader.cpus))
    found = Tune(input_of(job, tuned=True), job.resources.cpus, best.num_workers, best.prefetch_factor, own, usable)
    return keep_tune(Path(args.job), plan.target, found)


class WrittenResult(NamedTuple):
    """What became of the result of a job's `plan`: the lock that has it, and why a file can't be written."""

    plan: LaunchPlan
    lock: Path | None
    failed: LaunchError | None


def _tell(tuned: Tuned, kept: WrittenResult, args: argparse.Namespace, streams: Streams) -> None:
    """Print what was timed, and what could not be written of it."""
    from trainlaunch.measure.tune.result import WIDTH, summary, table, tuned_document

    wrong = kept.failed.diagnostics if kept.failed else ()
    for each in wrong:
        streams.say(framed(each, style_of(streams.err)))
    if args.output == "json":
        written = str(kept.lock) if kept.lock else None
        streams.result(document({**tuned_document(tuned), "written": written, "findings": as_json(wrong)}))
        return
    streams.show("\n".join([f"{tuned.loader.kind} of the loop at {tuned.loader.at}", *table(tuned), ""]) + "\n")
    for line in (*summary(tuned), *_advice(tuned, kept, args)):
        streams.show(wrapped(line, WIDTH, 2) + "\n")


def _is_plain(args: argparse.Namespace) -> bool:
    """Return whether what was written is of the job file as it stands, and not only of what --set makes of it."""
    if not args.sets:
        return True
    try:
        return fresh_tune(job_of(argparse.Namespace(**{**vars(args), "sets": []}))) is not None
    except JobFileRejected:
        return False


def _advice(tuned: Tuned, kept: WrittenResult, args: argparse.Namespace) -> Iterator[str]:
    """Yield what to type so that the job has the result."""
    best = tuned.best
    if tuned.takes_it is False:
        way = deciding_workers(kept.plan.job).take_planned() or UNKNOWN.take_planned()
        yield f"the script does not take num_workers from trainlaunch: it has its own where the plan has others; {way}"
    if best.pin_memory != tuned.as_it_is.pin_memory:
        yield f"write data_loader.pin_memory: {str(best.pin_memory).lower()} as well; the lock has no place for it"
    if kept.lock is not None:
        same = "" if _is_plain(args) else ", with the same --set"
        stated = ", ".join(f"{field} ({origin})" for field, origin in _stated(kept.plan.job, best.num_workers))
        wins = f"; what is set wins, delete it: {stated}" if stated else ""
        yield f"wrote {kept.lock}: plan, render and up use it for target {kept.plan.target}{same}{wins}"
        return
    if best != tuned.as_it_is and tuned.compared:
        typed = f"num_workers: {best.num_workers}" + f", prefetch_factor: {best.prefetch_factor}" * bool(
            best.num_workers
        )
        # What is set wins over the lock.
        lock = "" if any(_stated(kept.plan.job, best.num_workers)) else "add --write, or "
        env = ", ".join(f'{name}: "{tuned.own_threads}"' for name in MATH)
        threads = f" and `env: {{{env}}}`" if tuned.own_threads is not None else ""
        yield f"keep it: {lock}write `data_loader: {{{typed}}}`{threads} in the job file"


def _stated(job: JobSpec, workers: int) -> Iterator[tuple[str, Origin]]:
    """Yield what the job sets itself of what the lock has for the loader that trains, each with its place."""
    trains = job.data_loader.loaders[0]
    for field in ("num_workers", "prefetch_factor") if workers else ("num_workers",):
        if states(job, trains, field):
            yield field, job.origin(job.loader_field(trains.name, field))
