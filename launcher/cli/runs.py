"""What the verbs about runs share: which job is meant, its newest container, the words about its end."""

from __future__ import annotations

import argparse
import contextlib
import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.cli.common import add_policy_argument
from launcher.cli.report import help_line
from launcher.cli.streams import Streams, coloured, standard_streams
from launcher.cli.target_options import add_place_arguments, job_file
from launcher.errors import EXIT_BEFORE_START, TargetUnavailable
from launcher.targets import DEFAULT_TARGET, TARGETS
from launcher.units import human_size

if TYPE_CHECKING:
    from launcher.diagnose.diagnosis import Diagnosis
    from launcher.diagnose.evidence import Evidence
    from launcher.plan.launch_plan import LaunchPlan
    from launcher.run.backend import Backend, Started
    from launcher.run.watch import HangWatch

RUN_TARGETS = tuple(each.name for each in TARGETS.values() if each.on_this_machine)
CLUSTER_TARGETS = tuple(each.name for each in TARGETS.values() if not each.on_this_machine)
MOST_SHOWN = 300
TORCHRUN_ENDS = "ChildFailedError"
_EXCEPTION = re.compile(r"(\[rank\d+\]: *)?[A-Za-z_][\w.]*(Error|Exception|Interrupt)\b")


def add_run_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names a job, by its file or its name."""
    parser.add_argument("job", metavar="JOB", help="a job file, or the name of a job")
    add_policy_argument(parser)
    add_run_target_argument(parser, "where the job's newest run is, clusters apart")


def add_run_target_argument(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the option that names a target which keeps runs; `default` says what is taken without it."""
    targets = (*RUN_TARGETS, *CLUSTER_TARGETS)
    parser.add_argument("--target", choices=targets, help=f"where the run is (default: {default})")
    add_place_arguments(parser)


@contextlib.contextmanager
def backend_of(target: str) -> Iterator[Backend]:
    """Give the backend of a target, and close its connections afterwards. Raises TargetUnavailable."""
    from launcher.run.backends import backend_named

    with contextlib.closing(backend_named(target, _say_once)) as backend:
        yield backend


@functools.cache
def _say_once(text: str) -> None:
    standard_streams().say(text)


def run_target(args: argparse.Namespace) -> str:
    """Return the target that the arguments of a verb about runs mean: the asked one, else where the newest run is."""
    if args.target:
        return str(args.target)
    job = job_file(args.job, policy=args.policy)
    if job is not None and not job.target_record.starts_container:
        return job.target  # its runs need no engine
    name = args.job if job is None else job.name
    newest: dict[str, float] = {}
    for target in reversed(RUN_TARGETS):
        try:
            with backend_of(target) as backend:
                found = backend.runs(name)
        except TargetUnavailable:
            break  # without an engine only this host's own runs are known
        if found:
            newest[target] = found[0].created
    return max(newest, key=lambda target: newest[target], default=DEFAULT_TARGET)


def job_name(argument: str, *, policy: Path | None = None) -> str:
    """Return the job's name: of the file that `argument` names, else `argument` itself. Raises JobFileRejected."""
    job = job_file(argument, policy=policy)
    return argument if job is None else job.name


def runs_of(backend: Backend, job: str) -> tuple[Started, ...]:
    """Return the containers of a job, newest first; raises TargetUnavailable (TL510) where there are none."""
    found = backend.runs(job)
    if not found:
        from launcher.run.wording import no_such_run

        fix = "start it with `trainlaunch up JOB`, or list what there is with `trainlaunch ps`"
        raise TargetUnavailable([no_such_run(backend.place, job, {each.job for each in backend.runs()}, fix=fix)])
    return found


def newest_containers(backend: Backend, job: str) -> tuple[Started, ...]:
    """Return the containers of a job's newest run, by node. Raises TargetUnavailable (TL510) where there are none."""
    from launcher.run.multi_node import newest_of

    return newest_of(runs_of(backend, job))


def code_of_all(backend: Backend, containers: tuple[Started, ...], say: Callable[[str], None]) -> int:
    """Wait until a run has ended, or the first of its nodes has failed, and return its exit code as `code_of` does."""
    if len(containers) == 1:
        return code_of(backend, containers[0], say)
    from launcher.run.multi_node import deciding, ends_of

    ends = ends_of([functools.partial(code_of, backend, each, say) for each in containers])
    code = next((each for each in ends if each), 0)
    # Those that had ended before answer in any order: the engine knows which was first.
    now = tuple(filter(None, (backend.inspect(each.id) for each in containers)))
    return (deciding(now).exit_code if now else None) or code


def code_of(backend: Backend, container: Started, say: Callable[[str], None]) -> int:
    """Wait for the end of a run and return its exit code; 125, and why, where it has none."""
    code = backend.wait(container.id)
    if code is None:
        now = backend.inspect(container.id)
        removed = f"{container.noun} {container.name} was removed while it was waited for"
        why = "" if now is None else now.error or "it was created and has not started"
        say(f"{now.noun} {now.name} has no exit code: {why}" if now is not None else removed)
        return EXIT_BEFORE_START
    if container.exit_code is None and container.status != "running":
        now = backend.inspect(container.id)  # the engine answers 0 for one that was never started
        if now is not None and now.exit_code is None:
            say(f"container {container.name} was created and has not started, so it has no exit code")
            return EXIT_BEFORE_START
    return code


def hints(command: Callable[[str], str], line: Callable[[str], None]) -> None:
    """Print how to follow a job that was left alone and how to end it; `command` gives a verb's command line."""
    line(f"follow it: {command('logs -f')}")
    line(f"end it:    {command('down')}")


def hang_watch(plan: LaunchPlan, redacted: Callable[[str], str] = str) -> HangWatch:
    """Return what tells of a log that its job will never end, in one sentence with the fix; empty where it may.

    `redacted` takes secrets out of a log before it is quoted.
    """
    from launcher.diagnose import explain_hang
    from launcher.diagnose.evidence import Evidence

    memory = plan.job.resources.memory or 0

    def hangs(log: str) -> str:
        known = Evidence(None, redacted(log), shm_size=plan.shm.size.value, memory=memory, target=plan.target)
        diagnosis = explain_hang(known)
        return f"{diagnosis.sentence}; {diagnosis.fix}" if diagnosis else ""

    return hangs


def say_diagnoses(evidence: Evidence, streams: Streams, line: Callable[[str], None]) -> None:
    """Print why a run ended: one or two causes, or the bare evidence where nothing names one."""
    from launcher.diagnose import explain_end

    diagnoses = explain_end(evidence)
    for diagnosis in diagnoses:
        line(framed_diagnosis(diagnosis, colour=coloured(streams.err)))
    if not diagnoses and evidence.exit_code:
        line(f"trainlaunch: no known cause; {bare_evidence(evidence)}")


def framed_diagnosis(diagnosis: Diagnosis, *, colour: bool) -> str:
    """Return a diagnosis in the frame that errors have."""
    head = f"cause[{diagnosis.code}]"
    head = f"\x1b[1;31m{head}\x1b[0m" if colour else head
    sure = "" if diagnosis.confidence == "certain" else f" ({diagnosis.confidence})"
    told = f"   = saw: {shown(diagnosis.saw)}\n   = fix: {diagnosis.fix}\n{help_line(diagnosis.code)}"
    return f"{head}: {diagnosis.sentence}{sure}\n{told}"


def bare_evidence(evidence: Evidence) -> str:
    """Return what is known about an end, without a guess."""
    memory = human_size(evidence.memory) if evidence.memory else "none"
    peak = "unknown" if evidence.shm_peak is None else human_size(evidence.shm_peak)
    size = human_size(evidence.shm_size) if evidence.private_shm and evidence.shm_size else "unknown"
    reason = f"{evidence.reason}: {shown(evidence.words)}, " if evidence.reason else ""
    return (
        f"{reason}exit code {evidence.exit_code}, OOMKilled {str(evidence.oom_killed).lower()}, memory limit {memory}, "
        f"/dev/shm peak {peak} of {size}, {_last_words(evidence.log)}"
    )


def shown(text: str) -> str:
    """Return a line of a job's as it may stand in one of ours: no control characters, at most about 300 characters."""
    clean = "".join(each if each.isprintable() else "?" for each in text)
    return clean if len(clean) <= MOST_SHOWN else f"{clean[: MOST_SHOWN - 60]} … {clean[-60:]}"


def _last_words(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if re.search(r"\w", line)]
    if any(TORCHRUN_ENDS in line for line in lines):  # its own long epilogue stands below the rank's error
        errors = [line for line in lines if _EXCEPTION.match(line) and TORCHRUN_ENDS not in line]
        lines = errors or lines
    return f"last line: {shown(lines[-1]) if lines else '(nothing printed)'}"
