"""The plan of a bare command line: a job file in memory, as `init` would draft it, planned for this host."""

from __future__ import annotations

import functools
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from trainlaunch.diagnostics import Diagnostic, Severity
from trainlaunch.errors import JobFileRejected, UsageError
from trainlaunch.init.command_container import CommandContainer
from trainlaunch.init.command_text import SECRET_NAME, CommandOptions, command_text, with_loader_fields
from trainlaunch.init.job_text import job_name
from trainlaunch.job.command_script import CommandScript, command_script
from trainlaunch.job.reading.job_reader import read_job
from trainlaunch.job.spec import JobSpec
from trainlaunch.job.starter_search import starter_of
from trainlaunch.job.tokens import literal_of, near_token
from trainlaunch.plan import make_plan
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.rules import plan_job
from trainlaunch.rules.sources.deciding_workers import PLANNED, WorkersDecision, workers_decisions
from trainlaunch.run.base.host_cpus import cpus_here
from trainlaunch.run.base.host_gpus import gpu_nodes
from trainlaunch.run.base.slurm import name_of_task, slurm_task
from trainlaunch.script.read_script import known_facts
from trainlaunch.script.script_facts import VARIABLE, ScriptFacts
from trainlaunch.targets import LOCAL
from trainlaunch.units import MIB

AUTO = "auto"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_GPU = re.compile(r"\d{1,9}$|GPU-|MIG-")  # with any other word, as -1 or NoDevFiles, CUDA ends its list
_FILE = "job.yaml"
_OWN_ERRORS = frozenset({"TL215", "TL218"})  # an argument that is missing, a script that isn't there
_UNCHANGED = "data_loader.inject=env"  # a draft may force workers on a script; a command runs as it is


class CommandPlan(NamedTuple):
    """A command's plan; `decisions` say who decides the workers of each loader, and `text` is its job file.

    `run` is the id of its run. `facts` are those of its script, None where there is none that can be read.
    """

    plan: LaunchPlan
    decisions: tuple[WorkersDecision, ...]
    facts: ScriptFacts | None
    text: str
    run: str


class CommandNumbers(NamedTuple):
    """What was asked for a command beside its words, as typed; None: what the script and this host have."""

    name: str | None = None
    cpus: str | None = None
    memory: str | None = None
    gpus: str | None = None
    workers: str | None = None
    sets: tuple[str, ...] = ()


def command_plan(
    command: Sequence[str],
    asked: CommandNumbers,
    env: Mapping[str, str],
    run: str,
    container: CommandContainer | None = None,
) -> CommandPlan:
    """Return the plan of a command line; `run` is the id that its run will have. Raises JobFileRejected, UsageError."""
    path = _path(command_script(command))
    facts = None if path is None else known_facts(path)
    name = asked.name or job_name(path or Path(command[0]))
    options = _options(name, command, asked, env, container)
    try:
        return _planned(options, asked, facts, run)
    except JobFileRejected as rejected:
        if asked.workers is not None or not all(map(_is_of_the_file, rejected.diagnostics)):
            raise
        # A number of its own that no job file can have: torch has to judge it.
        return _planned(options, asked, None, run, own_numbers=False)


def _is_of_the_file(found: Diagnostic) -> bool:
    return found.severity is not Severity.ERROR or found.code.startswith("TL1")  # TL2 is what was asked with --set


def _options(
    name: str,
    command: Sequence[str],
    asked: CommandNumbers,
    env: Mapping[str, str],
    container: CommandContainer | None,
) -> CommandOptions:
    """Return what the job file says of a command, by what was asked, this host and the shell around it."""
    ranks, gpus = _ranks_and_gpus(asked.gpus, command, by_name=container is not None)
    here = cpus_here()
    task = slurm_task() if container is None else None
    if container is not None:
        here = 0 if container.cpus is None else min(here, container.cpus or here)
    return CommandOptions(
        name=name,
        command=command,
        folder=str(Path.cwd()),
        env=env,
        cpus=asked.cpus or (str(here) if here else ""),
        memory=asked.memory or (f"{task.memory // MIB}Mi" if task and task.memory else ""),
        gpus=gpus,
        ranks=ranks,
        container=None if container is None else container.options,
    )


def _planned(
    options: CommandOptions, asked: CommandNumbers, facts: ScriptFacts | None, run: str, *, own_numbers: bool = True
) -> CommandPlan:
    job = _job(options, facts, [_UNCHANGED, *asked.sets])
    decisions = _decisions(job, facts)
    sets = [_UNCHANGED, *(_own_numbers(job, decisions) if own_numbers else ())]
    unknown = [] if len(sets) > 1 or (facts and facts.loaders) else ["data_loader.num_workers=0"]  # may have none
    if asked.workers is not None:
        options, sets = _with_workers(options, decisions, asked.workers)
        unknown = []
    job = _job(options, facts, [*sets, *unknown, *asked.sets])
    name = f"{job.name[:50]}-{run[:4]}"
    plan = _plan(job, name if options.container else name_of_task(name))._replace(by_run=True)
    text = with_loader_fields(command_text(_without_secrets(options), facts), _shared(sets), "as it ran")
    return CommandPlan(plan, _decisions(job, facts), facts, text, run)


def _decisions(job: JobSpec, facts: ScriptFacts | None) -> tuple[WorkersDecision, ...]:
    """Return who decides the workers; on this host a variable that the script reads may be the shell's."""
    if job.target == LOCAL.name and facts is not None:
        values = [each.settings["num_workers"] for each in facts.loaders]
        read = {each.text for each in values if each.kind == VARIABLE} & os.environ.keys()
        job = job._replace(env={**{name: os.environ[name] for name in read}, **job.env})
    return workers_decisions(job, facts)


def _without_secrets(options: CommandOptions) -> CommandOptions:
    """Return what a job file may say of a command: it is kept and handed on."""
    secrets = [name for name, value in options.env.items() if value and SECRET_NAME.search(name)]
    env = {name: value for name, value in options.env.items() if name not in secrets}
    return options._replace(env=env, secrets=secrets)


def _plan(job: JobSpec, name: str) -> LaunchPlan:
    """Return the plan; what the command's own programs say of its words is left to them. Raises JobFileRejected."""
    try:
        return plan_job(job, name=name)
    except JobFileRejected as rejected:
        if any(each.severity is Severity.ERROR and each.code not in _OWN_ERRORS for each in rejected.diagnostics):
            raise
        return make_plan(job, name=name)


def _job(options: CommandOptions, facts: ScriptFacts | None, sets: Sequence[str]) -> JobSpec:
    """Return the job; what is nearly a token is an error in a job file, and a command's own word here."""
    near = {each for each in (*options.command, *options.env.values()) if near_token(each)}
    plain = options._replace(
        command=["-" if each in near else each for each in options.command],
        env={name: "-" if value in near else value for name, value in options.env.items()},
    )
    job = _read(command_text(plain, facts), sets)
    if not near:
        return job
    own = {name: value for name, value in options.env.items() if value in near}
    return job._replace(command=(*map(literal_of, options.command), *options.extra), env={**job.env, **own})


def _shared(sets: Iterable[str]) -> dict[str, str]:
    """Return the fields of data_loader among `sets`, those that all loaders have alike by their common name."""
    found: dict[str, set[str]] = {}
    for field, _, value in (each.partition("=") for each in sets):
        found.setdefault(field.rpartition(".")[2], set()).add(value)
    return {name: values.pop() for name, values in found.items() if len(values) == 1}


def _read(text: str, sets: Sequence[str]) -> JobSpec:
    """Return the job of a text that no file has; places in it are nobody's."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _FILE
        try:
            path.write_text(text, encoding="utf-8")
        except UnicodeEncodeError as cause:
            told = "a word, a variable or the folder of the command is no UTF-8 text"
            fix = "rename the file, or start the command by a script that has the word in it"
            raise UsageError([Diagnostic("TL118", told, fix)]) from cause
        try:
            job = read_job(path, sets=sets)
        except JobFileRejected as rejected:
            raise JobFileRejected([each._replace(span=None) for each in rejected.diagnostics]) from rejected
    origins = {name: each._replace(span=None) for name, each in job.origins.items()}
    return job._replace(path=str(Path.cwd() / _FILE), origins=origins)


def _path(script: CommandScript | None) -> Path | None:
    """Return the file of a command's script, seen from this folder; None where it has none that is here."""
    files = script.files if script else ()
    return next((Path(each) for each in files if os.path.isfile(each)), None)  # noqa: PTH113 - may raise


def _ranks_and_gpus(stated: str | None, command: Sequence[str], *, by_name: bool) -> tuple[int | None, str]:
    """Return how many ranks the plan counts, None where the command says it, and the GPUs that the job has.

    `by_name`: those that the shell sees are named, since the job doesn't get its variables.
    """
    visible, there = os.environ.get(_VISIBLE), gpu_nodes()
    named = None if visible is None else list(takewhile(_GPU.match, (each.strip() for each in visible.split(","))))
    seen = there if named is None or there == 0 else len(named)
    every = ",".join(named) if named and by_name else "all"
    gpus = stated if stated is not None else "" if seen == 0 else every
    starter = starter_of(command, None, os.environ)
    if starter is not None and isinstance(starter.count, int):
        return None, gpus
    return (1 if starter is None else max(1, seen or 1)), gpus


def _own_numbers(job: JobSpec, decisions: Iterable[WorkersDecision]) -> Iterable[str]:
    """Yield, as --set takes it, what the script has by itself: the plan only describes it."""
    for loader, decision in zip(job.data_loader.loaders, decisions, strict=False):
        if decision.number is not None:
            yield f"{_field(job, loader.name)}={decision.number}"


def _field(job: JobSpec, loader: str) -> str:
    several = len(job.data_loader.loaders) > 1
    return f"data_loader.loaders.{loader}.num_workers" if several else "data_loader.num_workers"


def _with_workers(
    options: CommandOptions, decisions: Sequence[WorkersDecision], workers: str
) -> tuple[CommandOptions, list[str]]:
    """Return what gives the script so many workers, where it takes them. Raises UsageError where it can't."""
    if workers != AUTO and not re.fullmatch(r"\d{1,4}", workers):
        raise UsageError([Diagnostic("TL118", f"--workers is {workers}", "write --workers auto, or a number")])
    sets = [_UNCHANGED, f"data_loader.num_workers={workers}"]
    extra, filled = dict.fromkeys(options.extra), dict(options.filled)
    for decision in decisions:
        if decision.kind in {"option", "override"} and decision.passed:
            fix = f"leave out --workers, or write {decision.name}{workers} in the command"
            told = f"the command itself sets {decision.name.rstrip('= ')} {decision.number}, and --workers {workers}"
            raise UsageError([Diagnostic("TL118", told, fix, why="the command's words arrive as they are")])
        if decision.kind in {"option", "override"}:
            name, joined = decision.name.rstrip("= "), decision.name.endswith("=")
            extra |= dict.fromkeys([f"{name}={PLANNED}"] if joined else [name, PLANNED])
        elif decision.kind == "variable":
            _require_unset(decision.name, options.env.get(decision.name), workers)
            filled[decision.name] = PLANNED
        elif decision.kind in {"constant", "library"}:
            sets[0] = "data_loader.inject=force"
        elif decision.kind != "plan":
            why = "a command's words are never edited, and nothing in its script is known to take the number"
            fix = "write the number in the command, where its script takes it, or let it read TRAINLAUNCH_NUM_WORKERS"
            raise UsageError([Diagnostic("TL118", f"--workers {workers} reaches no DataLoader", fix, why=why)])
    return options._replace(extra=list(extra), filled=filled), list(dict.fromkeys(sets))


def _require_unset(name: str, value: str | None, workers: str) -> None:
    """Raise UsageError where -e or --env-file gives the variable of the workers another number than --workers."""
    if value not in {None, workers}:
        told = f"{name} is {value} by -e or --env-file, and --workers is {workers}"
        fix = f"leave out --workers, or {name}"
        raise UsageError([Diagnostic("TL118", told, fix, why="the script takes its workers from that variable")])


@functools.cache
def python_of(command: tuple[str, ...]) -> str:
    """Return the program that a command starts, as PATH has it; empty where it has none."""
    import shutil

    from trainlaunch.job.shell_commands import program_at

    at = program_at(command)
    return "" if at is None else shutil.which(command[at]) or ""
