"""What `run` says: two lines before the command's own output, and how it ended after it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trainlaunch.cli.output.run_output import Screen, framed_diagnosis
from trainlaunch.cli.output.streams import Streams, style_of
from trainlaunch.init.command_plan import CommandPlan, python_of
from trainlaunch.init.command_text import with_loader_fields
from trainlaunch.plan.plan_label import planned_of
from trainlaunch.run.base.private_files import state_root
from trainlaunch.run.base.run_evidence import advice_in_options
from trainlaunch.run.base.shm_reading import batch_of, size_of_batch
from trainlaunch.run.base.slurm import slurm_task
from trainlaunch.run.base.wait_reading import waited_words
from trainlaunch.run.run_record import RunRecord
from trainlaunch.units import counted, format_cpus, format_duration, human_size

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.case import Diagnosis
    from trainlaunch.diagnose.base.evidence import Evidence
    from trainlaunch.rules.sources.deciding_workers import WorkersDecision
    from trainlaunch.run.base.store import Followed, Tell
    from trainlaunch.run.docker.image import CommandImage

PASSED = b"trainlaunch: preflight passed"
REPEATED = frozenset(
    {"python-exception", "own-exit-code", "stopped", "unknown"}
)  # the job's own last words say as much
SET_BY_PREFLIGHT = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "OPENCV_FOR_THREADS_NUM",
)


class Hidden:
    """Takes the preflight's line that all is well out of a command's output: alone it would not have that line.

    It may stand behind what a terminal echoed of keys that were typed before.
    """

    def __init__(self, show: Callable[[bytes], None]) -> None:
        self._show = show
        self._held: bytes | None = b""

    def __call__(self, data: bytes) -> None:
        """Show a piece of the output; what may still be the preflight's is held back until its line is whole."""
        if self._held is None:
            self._show(data)
            return
        text = self._held + data
        before, passed, rest = text.partition(PASSED)
        if not passed:
            self._held = _beginning(text, PASSED)
            shown = text[: len(text) - len(self._held)]
        elif b"\n" not in rest:
            shown, self._held = before, passed + rest
        else:
            shown, self._held = before + rest.partition(b"\n")[2], None
        if shown:
            self._show(shown)


def _beginning(text: bytes, word: bytes) -> bytes:
    """Return what a text ends in that a word begins with."""
    return next((word[:size] for size in range(len(word) - 1, 0, -1) if text.endswith(word[:size])), b"")


def first_lines(planned: CommandPlan) -> Iterator[str]:
    """Yield what is said before the command's own output: where it runs and on what, then workers and variables."""
    if (task := slurm_task()) and task.rank:
        return
    program = python_of(planned.plan.job.command or ())
    shm = os.statvfs("/dev/shm")
    where = f"run {planned.run} here" + f", {program}" * bool(program)
    if task:
        where += f", Slurm job {task.job}" + f", {counted(task.tasks, 'task')}" * (task.tasks > 1)
    yield _place_line(planned, where, shm.f_blocks * shm.f_frsize)
    yield from _numbers_line(planned, os.environ)
    if program and (venv := _other_environment(program)):
        yield f"trainlaunch: {venv}"


def first_lines_of(planned: CommandPlan, image: CommandImage) -> Iterator[str]:
    """Yield the same of a container."""
    yield _place_line(planned, f"run {planned.run} on {image.engine}, {image.name}", planned.plan.shm.size.value)
    yield from _numbers_line(planned, image.variables)


def _place_line(planned: CommandPlan, where: str, shm: int) -> str:
    asked = planned.plan.job.resources
    gpus = f"GPUs {asked.gpus.words}" if asked.gpus else "no GPU"
    cpus = [] if asked.cpus is None else [counted(format_cpus(asked.cpus), "CPU")]
    return f"trainlaunch: {', '.join([where, *cpus, gpus, f'/dev/shm {human_size(shm)}'])}"


def _numbers_line(planned: CommandPlan, known: Container[str]) -> Iterator[str]:
    """Yield who decides the workers, and which variables are set that were not `known`."""
    loaders = planned.decisions if planned.facts and planned.facts.loaders else ()
    told = dict.fromkeys(_decided(each, planned.plan.num_workers.value) for each in loaders)
    stated = planned.plan.job.env
    unset = {name: number.value for name, number in planned.plan.threads if name not in known and name not in stated}
    ours = " ".join(f"{name}={unset[name]}" for name in SET_BY_PREFLIGHT if name in unset)
    second = [f"workers: {'; '.join(told)}"] if told else []
    second += [f"variables set, unset before: {ours}"] if ours else []
    if second:
        yield f"trainlaunch: {'; '.join(second)}"


def _decided(decision: WorkersDecision, given: int) -> str:
    if decision.kind != "plan":
        return decision.words
    return f"{given}, put into the script" if "inject" in decision.name else f"{given}, {decision.words}"


def _other_environment(program: str) -> str:
    """Return what is said of an environment beside the command that isn't active; empty where there is none."""
    beside = Path.cwd() / ".venv"
    if not os.access(beside / "bin" / "python", os.X_OK) or Path(program).is_relative_to(beside):
        return ""
    return f".venv here is not active: this is {program}"


def keep_job_file(planned: CommandPlan) -> None:
    """Keep the job file that the run would have had, with what it measured of a batch, for `init --from`."""
    run = planned.run
    kept = RunRecord(run)
    peak = kept.peak(1, None)
    batch = None if peak is None else batch_of(planned_of(planned.plan), peak)
    size = {} if batch is None else {"batch_bytes": f"{{size: {size_of_batch(batch)}, tensors: 1}}"}
    kept.keep_text(with_loader_fields(planned.text, size, f"measured of run {run}") if size else planned.text)


def first_hint(planned: CommandPlan) -> str:
    """Return how to keep the job, once for each script; empty where it was said, or can't be noted as said."""
    noted = state_root().parent / "hinted"
    try:
        path = planned.facts and str(Path(planned.facts.path).resolve())
        known = noted.read_text().splitlines() if noted.exists() else []
        if not path or path in known:
            return ""
        noted.write_text("\n".join([*known[-999:], path]) + "\n")
    except (OSError, UnicodeError):
        return ""
    return f"`trainlaunch init --from {planned.run} >job.yaml` writes its job file, with what this run measured"


def teller_of_command(
    planned: CommandPlan,
    screen: Screen,
    streams: Streams,
    advise: Callable[[Followed], str],
    *,
    quiet: bool,
) -> Tell:
    """Return what says how a command ended, and why where its own last words don't; `advise` as of `teller`."""
    begun = time.monotonic()

    def tell(followed: Followed) -> None:
        if followed.started:
            keep_job_file(planned)
            streams.result(f"{followed.started}\n")
            return
        task = slurm_task()
        silent = quiet or (task is not None and task.rank > 0 and not followed.exit_code)  # rank 0 speaks for all
        evidence = followed.evidence
        causes = [] if evidence is None else _causes(evidence)
        for diagnosis in causes:
            screen.line(framed_diagnosis(diagnosis, style_of(streams.err)))
        if not silent or causes:
            screen.say(_ending(followed, planned.run, time.monotonic() - begun))
        keep_job_file(planned)
        hints = () if silent or followed.exit_code else (advise(followed), first_hint(planned))
        for hint in filter(None, hints):
            screen.say(hint)

    return tell


def in_options(followed: Followed, planned: CommandPlan) -> Followed:
    """Return what is known of a command's end, with who decides its workers, wherever its script lies."""
    if followed.evidence is None:
        return followed
    decision = next((each for each in planned.decisions if each.kind != "plan"), planned.decisions[0])
    return followed._replace(evidence=replace(followed.evidence, workers=advice_in_options(decision)))


def _causes(evidence: Evidence) -> list[Diagnosis]:
    from trainlaunch.diagnose import explain_end  # with all symptoms, which no start needs

    return [each for each in explain_end(evidence) if each.symptom not in REPEATED]


def _ending(followed: Followed, run: str, seconds: float) -> str:
    evidence, parts = followed.evidence, [f"run {run} ended with {followed.exit_code} after {_time(seconds)}"]
    if evidence is not None and evidence.stopped_by:
        parts[0] += f" ({evidence.stopped_by})"
    if followed.exit_code and evidence is not None and not evidence.stopped:
        parts += _own_line(evidence)
    if followed.data_wait is not None and (words := waited_words(followed.data_wait, followed.seconds)):
        parts[0] += f", {words}"
    if evidence is not None and evidence.shm_peak:
        parts.append(f"/dev/shm used at most {human_size(evidence.shm_peak)}")
    return "; ".join(parts)


def _own_line(evidence: Evidence) -> list[str]:
    """Return the script's own line that a traceback ends in, where one ended it."""
    from trainlaunch.diagnose import all_causes

    raised = next((each for each in all_causes(evidence) if each.name == "python-exception"), None)
    return [raised.sentence] if raised else []


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else format_duration(int(seconds))
