"""`trainlaunch probe`: run the job's own script for some batches, and say what its loaders need and what is wrong."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from trainlaunch.cli.arguments.job_arguments import job_of, reach_of, refuse_place_elsewhere, say_findings
from trainlaunch.cli.arguments.measuring import (
    keep_probe,
    measuring_arguments,
    measuring_fields,
    refuse_unwritable_lock,
)
from trainlaunch.cli.arguments.run_argument import store_of_plan
from trainlaunch.cli.arguments.verb_table import Usage, argument
from trainlaunch.cli.output.report import document
from trainlaunch.cli.output.run_output import Screen, say_diagnoses
from trainlaunch.cli.output.streams import Streams
from trainlaunch.diagnostics import Diagnostic, Severity
from trainlaunch.errors import LaunchError
from trainlaunch.exit_codes import EXIT_FINDINGS, EXIT_INTERRUPTED
from trainlaunch.job.spec import JobSpec
from trainlaunch.plan.instrumentation import PROBE
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.units import counted

if TYPE_CHECKING:
    from trainlaunch.job.loader_spec import ProbeMeasurement
    from trainlaunch.measure.loader_records import Measurement, Records
    from trainlaunch.measure.measuring_run import MeasuringRun
    from trainlaunch.run.base.store import RunStore

WHAT_RUNS = """\
The job's own command runs once on the target, under the job's limits and
with its mounts and secrets, under a name of its own. It ends after --batches
of the loader that trains, without a word to the script: files that it writes
before are written, and nothing later is. With --through it goes on to its
own end and each loop is cut short: its evaluation and saving run. The job's
output goes to stderr; the run is removed afterwards."""
BATCHES, SECONDS = 32, 60
AFTER_DEADLINE = 120  # seconds after active_deadline, by which the script ends itself where nobody is left to end it


def _from_one(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:9]) >= 1 and len(text) <= 9):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, not {text!r}")
    return int(text)


USAGE = Usage(
    examples=(
        "trainlaunch probe job.yaml",
        "trainlaunch probe job.yaml --write    # keeps it in job.lock.yaml",
        "trainlaunch probe job.yaml --through --batches 8 --target kubernetes -o json",
    ),
    exit_codes=(
        "0 measured and nothing wrong, or warnings alone and kept by --write, 1 findings, no loader measured or "
        "a bad job file, 2 usage, 3 target unavailable, 70 an internal error, 130 interrupted"
    ),
    arguments=measuring_arguments(
        WHAT_RUNS,
        argument(
            "--batches",
            type=_from_one,
            default=BATCHES,
            metavar="N",
            help=f"of the loader that trains (default: {BATCHES})",
        ),
        argument(
            "--seconds",
            type=_from_one,
            default=SECONDS,
            metavar="T",
            help=f"of batches, at most; checks of what was seen come on top (default: {SECONDS})",
        ),
        argument("--through", action="store_true", help="let the script come to its end, each loop cut to N batches"),
    ),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Plan as `up` does, run once with a large /dev/shm, and say what was seen."""
    from trainlaunch.measure.loader_records import Records
    from trainlaunch.rules import check_start, plan_job

    job = _unmeasured(job_of(args))
    plan = plan_job(job)
    refuse_place_elsewhere(args, plan.target)
    if args.write:
        refuse_unwritable_lock(Path(args.job))
    say_findings(check_start(plan), streams)
    records = Records()
    with store_of_plan(args, plan) as store:
        ran = _run(args, plan, streams, records, store)
    if ran.interrupted:
        streams.say(f"trainlaunch: {ran.interrupted}: nothing was measured to its end, and nothing is written")
        return EXIT_INTERRUPTED
    return _told(args, plan, ran, records.measured(), streams)


def _unmeasured(job: JobSpec) -> JobSpec:
    """Return the job without what an earlier probe found: it is measured anew."""
    return job if job.measured is None else job._replace(measured=job.measured._replace(probe=None, probed=None))


def _measuring(args: argparse.Namespace, plan: LaunchPlan) -> LaunchPlan:
    """Return the plan of the run that measures."""
    from trainlaunch.policy import read_job
    from trainlaunch.rules import plan_job

    ours = measuring_fields(args, plan, "probe", args.seconds)
    job = _unmeasured(
        read_job(
            Path(args.job), target=plan.target, sets=[*plan.job.sets, *ours], policy=args.policy, reach=reach_of(args)
        )
    )
    planned = plan_job(job)
    late = (planned.job.active_deadline or 0) + AFTER_DEADLINE
    asked = {"batches": args.batches, "seconds": args.seconds, "through": args.through, "deadline": late}
    if not planned.target_record.enforces_limits and planned.memory.limit is not None:
        asked["memory"] = planned.memory.limit
    return planned._replace(
        inside=planned.inside.with_part(PROBE, ("TRAINLAUNCH_PROBE", json.dumps(asked))), measures=plan.job.name
    )


def _run(
    args: argparse.Namespace, plan: LaunchPlan, streams: Streams, records: Records, store: RunStore
) -> MeasuringRun:
    from trainlaunch.measure.measuring_run import RunOutput, run_measuring

    screen = Screen(streams)
    measuring = _measuring(args, plan)
    screen.say(f"probing {plan.job.name} on {plan.target} as {measuring.name}, {_until(args)}")
    if plan.nodes > 1:
        screen.say(f"one of its {plan.nodes} nodes runs: each loads batches of the same kind")
    typed = shlex.join(["trainlaunch", *args.words])
    return run_measuring(measuring, records.take, RunOutput(screen.err, screen.say), typed, store)


def _until(args: argparse.Namespace) -> str:
    if args.through:
        ends = f"to its own end, or {args.seconds} s"
        return f"{ends}, each loop cut to {counted(args.batches, 'batch')}: its own saving and evaluation run"
    return f"until {counted(args.batches, 'batch')} or {args.seconds} s; later output isn't written"


def _told(
    args: argparse.Namespace, plan: LaunchPlan, ran: MeasuringRun, measured: Measurement, streams: Streams
) -> int:
    """Print what was seen, keep it where asked, and return the exit code."""
    from trainlaunch.cli.output.probe_output import ProbeResult, as_document, as_text
    from trainlaunch.measure.probe_lock import probe_of

    probe = probe_of(plan, measured, ran.workers)
    written, failed = _kept(args, probe)
    problems = (*_problems(args, plan, ran, measured), *(failed.diagnostics if failed else ()))
    result = ProbeResult(plan, measured, probe, written, problems)
    if args.output == "json":
        streams.result(document(as_document(result)))
    else:
        streams.show(as_text(result))
    _explain(ran, measured, streams)
    if _has_none(plan, ran, measured):
        streams.say("trainlaunch: no DataLoader was seen, as `data_loader: none` says")
        return 0
    if failed is not None:
        return failed.exit_code
    said = [found for _, found in result.findings if written is None or found.severity is Severity.ERROR]
    return EXIT_FINDINGS if result.problems or said or probe is None else 0


def _kept(args: argparse.Namespace, probe: ProbeMeasurement | None) -> tuple[Path | None, LaunchError | None]:
    """Write the lock where that is asked for; return its path, or why it can't be written."""
    if not args.write or probe is None:
        return None, None
    try:
        return keep_probe(Path(args.job), probe), None
    except LaunchError as failed:
        return None, failed


def _has_none(plan: LaunchPlan, ran: MeasuringRun, measured: Measurement) -> bool:
    """Return whether a job without DataLoaders has come to its end."""
    return not (plan.job.data_loader.loaders or measured.loaders or ran.exit_code or ran.deadline)


def _problems(
    args: argparse.Namespace, plan: LaunchPlan, ran: MeasuringRun, measured: Measurement
) -> Iterator[Diagnostic]:
    """Yield what kept loaders from being measured."""
    if measured.loaders or _has_none(plan, ran, measured):
        return
    how = f"the script ended with exit code {ran.exit_code}"
    fix = (
        "let it build its DataLoader in the Python that `command` starts, without -S or -I; write `data_loader: none` "
        "where the job has no DataLoader"
    )
    if ran.deadline:
        how, fix = (
            "the script was stopped at its active_deadline",
            "give it a longer one, as with `--set active_deadline=2h`",
        )
    elif ran.exit_code:
        fix = (
            f"mend what its own words above say; `trainlaunch up {shlex.quote(args.job)}` must come to the first batch"
        )
    yield Diagnostic("TL728", f"{how} before any DataLoader gave a batch", fix, why=_WHY)


_WHY = "probe follows torch's DataLoader from inside the script, and measures the batches that it gives"


def _explain(ran: MeasuringRun, measured: Measurement, streams: Streams) -> None:
    """Say why a script died that did not come to its end, or that it failed after all that was measured."""
    if measured.reason == "script" and ran.exit_code and measured.checks_seconds is not None:
        streams.say(f"trainlaunch: the script itself ended with exit code {ran.exit_code}")
    if measured.reason and measured.checks_seconds is None:
        streams.say("trainlaunch: the run ended while probe looked for defects; what it had read of batches stands")
    if ran.evidence is None or measured.reason or not ran.exit_code:
        return
    say_diagnoses(ran.evidence, streams, streams.say)
