"""`trainlaunch status`: /dev/shm, health and workers of a job's newest run."""

from __future__ import annotations

import argparse

from trainlaunch.cli.arguments.job_arguments import OUTPUT_ARGUMENT
from trainlaunch.cli.arguments.run_argument import RUN_ARGUMENTS, newest_run
from trainlaunch.cli.arguments.verb_table import Usage
from trainlaunch.cli.output.report import document
from trainlaunch.cli.output.run_output import bare_evidence, framed_diagnosis
from trainlaunch.cli.output.streams import Streams, style_of

FACTS = 11  # columns before what a line of `status` says
USAGE = Usage(
    examples=("trainlaunch status job.yaml", "trainlaunch status mnist --output json"),
    exit_codes=(
        "0 it runs or ended well, 1 it is unhealthy, ended with another code than 0, or the job file is bad, "
        "2 usage, 3 no such run, engine or cluster, 70 an internal error, 130 interrupted"
    ),
    arguments=(
        *RUN_ARGUMENTS,
        OUTPUT_ARGUMENT,
    ),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Show the containers of the job's newest run, who keeps it, and why it ended."""
    with newest_run(args, streams) as (store, run):
        report = store.report(run, streams.say)
    if args.output == "json":
        streams.result(document(report.status.document()))
        return int(report.bad)
    for line in report.lines:
        node = line[: line.find("] ") + 2] if line.startswith("[") else ""
        streams.row(line, len(node) + FACTS)
    for line in (report.status.suggestion or "").splitlines():
        streams.show(f"{line}\n")
    for line in report.further:
        streams.row(line, FACTS)
    for cause in report.causes:
        streams.row(framed_diagnosis(cause, style_of(streams.out)), FACTS)
    if report.evidence is not None and report.evidence.exit_code and not report.causes:
        streams.row(f"no known cause{bare_evidence(report.evidence)}", FACTS)
    return int(report.bad)
