"""What `probe` and `tune` share: their arguments, what their runs have other than the job, and their lock.

What one of them measured replaces its own part of the lock; the other's stays as it is.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from trainlaunch.cli.arguments.job_arguments import KIND_ARGUMENT, OUTPUT_ARGUMENT, job_arguments
from trainlaunch.cli.arguments.run_argument import PLACE_ARGUMENTS
from trainlaunch.cli.arguments.verb_table import Argument, ArgumentGroup, argument
from trainlaunch.cli.output.write_files import refuse_unwritable, replace_file
from trainlaunch.diagnostics import Report
from trainlaunch.errors import JobFileRejected
from trainlaunch.job.loader_spec import ProbeMeasurement, Tune
from trainlaunch.plan.launch_plan import LaunchPlan

if TYPE_CHECKING:
    from trainlaunch.job.reading.lock_reader import Lock


def measuring_arguments(what_runs: str, *own: Argument) -> tuple[Argument | ArgumentGroup, ...]:
    """Return the arguments of both commands; each command's own stand in the group that tells `what_runs`."""
    write = argument(
        "--write", action="store_true", help="keep the result in the lock beside the job file, where plan and up use it"
    )
    asked = ArgumentGroup((write, *own), "what runs", what_runs)
    return (*job_arguments(), KIND_ARGUMENT, OUTPUT_ARGUMENT, *PLACE_ARGUMENTS, asked)


def measuring_fields(args: argparse.Namespace, plan: LaunchPlan, verb: str, seconds: int) -> tuple[str, ...]:
    """Return, as --set takes them, what a run has that measures for so many seconds; --name names it."""
    from trainlaunch.measure.measuring_run import measuring_name, measuring_sets
    from trainlaunch.run.local.process_spec import host_memory

    name = args.name or measuring_name(plan.name, verb)
    return measuring_sets(plan, name, seconds=seconds, host_memory=host_memory())


def keep_probe(job_file: Path, probe: ProbeMeasurement) -> Path:
    """Write the part `probe` of the lock of `job_file` and return its path.

    Raises JobFileRejected for a lock that can't be read, and UsageError where it can't be written.
    """
    from trainlaunch.committed.lock_writer import lock_with_probe

    lock = _lock_of(job_file)
    return _replaced(job_file, lock_with_probe(job_file, lock.text if lock else None, probe))


def keep_tune(job_file: Path, target: str, tune: Tune) -> Path:
    """Write what was found on one target into the part `tune`, as keep_probe does; other targets' stay."""
    from trainlaunch.committed.lock_writer import lock_with_tunes

    lock = _lock_of(job_file)
    tunes = {**(lock.tunes if lock else {}), target: tune}
    return _replaced(job_file, lock_with_tunes(job_file, lock.text if lock else None, tunes))


def refuse_unwritable_lock(job_file: Path) -> None:
    """Raise what `keep_probe` and `keep_tune` would, as far as it is known before minutes of measuring."""
    from trainlaunch.committed.lock_writer import lock_with_tunes
    from trainlaunch.job.reading.lock_reader import lock_path

    lock = _lock_of(job_file)
    if lock_with_tunes(job_file, lock.text if lock else None, {}) is None:
        raise _mixed(job_file)
    refuse_unwritable(lock_path(job_file))


def _lock_of(job_file: Path) -> Lock | None:
    from trainlaunch.job.reading.lock_reader import read_lock

    report = Report()
    lock = read_lock(job_file, report)
    if len(report):
        raise JobFileRejected(report.sorted())
    return lock


def _replaced(job_file: Path, text: str | None) -> Path:
    from trainlaunch.job.reading.lock_reader import lock_path

    if text is None:
        raise _mixed(job_file)
    replace_file(lock_path(job_file), text)
    return lock_path(job_file)


def _mixed(job_file: Path) -> JobFileRejected:
    """Return the error for a lock of which no part can be replaced."""
    from trainlaunch.job.reading.lock_reader import unreadable_lock

    return JobFileRejected([unreadable_lock(job_file, "has parts that can't be told apart, line by line")])
