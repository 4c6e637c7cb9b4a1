"""`trainlaunch doctor`: why a run died or hangs, from the run or from its log; alone it looks at this host."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trainlaunch.cli.arguments.doctor_things import DoctorThings, told_apart
from trainlaunch.cli.arguments.job_arguments import (
    OUTPUT_ARGUMENT,
    POLICY_ARGUMENTS,
    STDIN,
    open_named,
    reach_of,
    unreadable,
)
from trainlaunch.cli.arguments.run_argument import PLACE_ARGUMENTS, RUN_TARGETS, newest_run, owner_argument
from trainlaunch.cli.arguments.verb_table import Usage, argument
from trainlaunch.cli.output.doctor_output import tell, tell_live
from trainlaunch.cli.output.report import document, framed
from trainlaunch.cli.output.streams import Streams, style_of
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import UsageError
from trainlaunch.manuals import find_manual
from trainlaunch.plan import make_plan
from trainlaunch.plan.plan_label import planned_of
from trainlaunch.run.base.run_evidence import with_job
from trainlaunch.targets import DEFAULT_TARGET

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.evidence import Evidence

CHUNK = 1 << 20
MAX_INSPECT_BYTES = 64 << 20
USAGE = Usage(
    examples=(
        "trainlaunch doctor mnist",
        "trainlaunch doctor crash.log inspect.json",
        "kubectl logs train-0 | trainlaunch doctor - --exit-code 1",
    ),
    exit_codes=(
        "0 a cause is known, or all is well, 1 none is known, or something is wrong on this host or in a run that goes "
        "on, 2 usage, 3 no such run, engine or cluster, 70 an internal error, 130 interrupted"
    ),
    arguments=(
        argument(
            "things",
            metavar="THING",
            nargs="*",
            help="a run, a job's name or file, a log from anywhere, what `docker inspect` or `kubectl get -o yaml` "
            "prints, several of them; - is a log on stdin; without one this host",
        ),
        argument("--log", metavar="FILE", help="a log, however it is called; - is stdin"),
        argument("--exit-code", type=int, metavar="CODE", help="how the job of that log ended"),
        argument(
            "--inspect", metavar="FILE", help=("`docker inspect`, or pods and events, as JSON or YAML; - is stdin")
        ),
        argument("--job", dest="job_file", metavar="FILE", help="the job file of that log"),
        argument("--target", choices=RUN_TARGETS, help="where the run is, or where that log is from"),
        *PLACE_ARGUMENTS,
        *POLICY_ARGUMENTS,
        owner_argument(),
        OUTPUT_ARGUMENT,
    ),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Explain logs, runs, or this host; of several the exit code is the highest. Raises UsageError."""
    things = told_apart(args.things)
    if things.logs or things.inspections:
        things = _with_options(args, things)
    of_a_log = args.log is not None or args.inspect is not None
    jobs = () if of_a_log else things.jobs
    if (things.runs or jobs) and of_a_log:
        raise _usage("RUN is a run of its own, and --log and --inspect are another", "leave out one of them")
    if things.runs or jobs:
        return max(_of_run(argparse.Namespace(**vars(args), job=each), streams) for each in (*things.runs, *jobs))
    if len(things.logs) > 1:
        return max(_of_one_log(args, each, streams) for each in things.logs)
    if not of_a_log:
        stated = next((each for each in ("exit_code", "job_file") if getattr(args, each) is not None), None)
        if stated is not None:
            raise _usage(f"--{stated.removesuffix('_file').replace('_', '-')} is about a log", "add `--log FILE`")
        return _machine(args, streams)
    evidence = _evidence(args)
    return tell(evidence, streams, output=args.output)


def _with_options(args: argparse.Namespace, things: DoctorThings) -> DoctorThings:
    """Put a log, an inspection and a job file where their options would. Raises UsageError where both are there."""
    for option, names in (("log", things.logs), ("inspect", things.inspections), ("job_file", things.jobs)):
        if not names:
            continue
        if getattr(args, option) is not None or (len(names) > 1 and option != "log"):
            what = f"--{option.removesuffix('_file')}"
            raise _usage(f"{', '.join(names)}: only one can be what {what} names", "leave out the others")
        setattr(args, option, names[0])
    return things._replace(jobs=())


def _of_one_log(args: argparse.Namespace, log: str, streams: Streams) -> int:
    if args.output == "json":
        raise _usage("-o json gives one document, and several logs are named", "name one log")
    streams.result(f"{log}\n")
    return tell(_evidence(argparse.Namespace(**{**vars(args), "log": log})), streams, output=args.output)


def _of_run(args: argparse.Namespace, streams: Streams) -> int:
    """Explain the newest run that `args.job` means: the end of an ended one, else what its containers do."""
    with newest_run(args, streams) as (store, run):
        evidence = store.evidence(run, streams.say)
        if evidence is not None:
            return tell(evidence, streams, output=args.output)
        return tell_live(store.live(run, streams.say), streams, output=args.output)


def _evidence(args: argparse.Namespace) -> Evidence:
    """Return what a log, an inspection and a job file tell together."""
    from trainlaunch.diagnose import new_scanner
    from trainlaunch.diagnose.base.evidence import Evidence
    from trainlaunch.diagnose.inspected import NotInspectedError, with_inspected

    if args.log in STDIN and args.inspect in STDIN:
        raise _usage("--log and --inspect can't both be stdin", "give one of them as a file")
    evidence = Evidence(args.exit_code, target=args.target or DEFAULT_TARGET, has_job=args.job_file is not None)
    if args.job_file is not None:
        evidence = _with_job(evidence, args)
    if args.inspect is not None:
        data = b"".join(_read(args.inspect, "--inspect", most=MAX_INSPECT_BYTES))
        try:
            evidence = with_inspected(evidence, data.decode("utf-8", "replace"))
        except NotInspectedError as odd:
            raise _usage(
                f"--inspect {args.inspect}: {odd}",
                ("give what `docker inspect NAME` or `kubectl get pod,events -o yaml` prints"),
            ) from odd
    if args.target:
        evidence = replace(evidence, target=args.target)
    if args.log is None:
        return evidence
    scanner = new_scanner()
    for data in _read(args.log, "--log"):
        scanner.feed(data)
    facts = scanner.facts()
    return replace(evidence, scanned=facts, log="\n".join(facts.last))


def _with_job(evidence: Evidence, args: argparse.Namespace) -> Evidence:
    """Return evidence with what a job file plans."""
    from trainlaunch.policy import read_job

    job = read_job(Path(args.job_file), target=args.target, use_lock=False, policy=args.policy, reach=reach_of(args))
    plan = make_plan(job)  # whatever its rules would say of it: the job has run
    limited = plan.target_record.enforces_limits
    return replace(
        with_job(evidence, job),
        target=plan.target,
        shm_size=plan.shm.size.value if plan.target_record.private_shm else 0,
        private_shm=plan.target_record.private_shm,
        memory=(plan.job.resources.memory or 0) if limited else 0,
        planned=planned_of(plan),
        image=plan.job.image or "",
        job=str(args.job_file),
    )


def _read(name: str, option: str, *, most: int | None = None) -> Iterable[bytes]:
    """Yield the bytes of a file or of stdin. Raises UsageError where it can't be read, or has more than `most`."""
    read = 0
    try:
        with open_named(name, f"{option} {name}") as source:
            while data := source.read(CHUNK):
                read += len(data)
                if most is not None and read > most:
                    raise _usage(f"{option} {name} has more than {most >> 20} MiB", "give one run's alone")
                yield data
    except OSError as cause:
        raise unreadable(f"{option} {name}", cause) from cause


def _machine(args: argparse.Namespace, streams: Streams) -> int:
    """Look at this host, and say what is wrong with it."""
    from trainlaunch.run.host_check import check_host

    found = check_host()
    wrong = [each.wrong for each in found if each.wrong is not None]
    if args.output == "json":
        names = {each.code: getattr(find_manual(each.code), "name", each.code) for each in wrong}
        seen = {id(each.wrong): f"{each.name}: {each.seen}" for each in found}
        diagnoses = [
            {
                "code": each.code,
                "symptom": names[each.code],
                "confidence": "certain",
                "evidence": [{"source": "machine", "line": 0, "text": seen[id(each)]}],
                "cause": each.message,
                "fix": each.fix,
                "commands": [],
            }
            for each in wrong
        ]
        machine = [{"name": each.name, "seen": each.seen, "fine": each.wrong is None} for each in found]
        streams.result(document({"diagnoses": diagnoses, "machine": machine}))
        return 1 if wrong else 0
    for each in found:
        streams.row(f"{each.name:12} {each.seen}", 13)
    for each_wrong in wrong:
        streams.result(f"{framed(each_wrong, style_of(streams.out))}\n")
    return 1 if wrong else 0


def _usage(message: str, fix: str) -> UsageError:
    return UsageError([Diagnostic("TL118", message, fix)])
