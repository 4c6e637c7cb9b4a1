"""The text of a drafted job file: what is known as fields, what is not as comments that say what to put there."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainlaunch.gpu_names import ALL_GPUS
from trainlaunch.init.loader_text import data_loader_block
from trainlaunch.job.fields.table import JOB, named
from trainlaunch.script.options import arguments, token_options, token_overrides, token_variables
from trainlaunch.script.script_facts import Option, ScriptFacts
from trainlaunch.units import UnreadableValue, parse_cpus
from trainlaunch.yamltree.emitter import yaml_string

GENERIC = {"train", "main", "run", "trainer", "training", "script", "__main__"}
MAX_NAME = 50  # leaves room for a target's suffix
WORKSPACE = "/workspace"
_PLAIN = re.compile(r"[A-Za-z_/](?:[\w./@+-]|:(?=[\w]))*|-{1,2}[A-Za-z][\w-]*|\.{1,2}(?:/[\w.-]+)*", re.ASCII)
_WORDS = re.compile(r"(?i)null|true|false|yes|no|on|off|y|n")
_MAX_OPTIONS = 12


@dataclass(frozen=True, slots=True)
class DraftOptions:
    """What the flags say, as they spell it, None where they don't.

    `source` is the folder of the script as the job file will name it, `folder` the one below it that the script is
    started in, `program` the script as seen from there.
    """

    name: str
    image: str | None = None
    cpus: str | None = None
    memory: str | None = None
    gpus: str | None = None
    source: str = "."
    program: str = "train.py"
    folder: str = ""

    @property
    def gpu_count(self) -> int:
        """The number of GPUs that are asked for; 0 for none, and for all of a machine."""
        ids = (self.gpus or "").split(",")
        return len(ids) if len(ids) > 1 else int(ids[0]) if ids[0].isdecimal() else 0

    def workers_certain(self, ranks: int) -> bool | None:
        """Whether the plan gives auto loaders at least one worker: a GPU job, or 4 CPUs for each rank; None unknown."""
        if self.gpus not in {None, "0"}:
            return True
        try:
            return None if self.cpus is None else parse_cpus(self.cpus) >= 4000 * ranks
        except UnreadableValue:
            return None


def draft(asked: DraftOptions, facts: ScriptFacts | None = None) -> str:
    """Return a job file that `trainlaunch plan` accepts, as long as the flags' values are right."""
    certain = asked.workers_certain(_rank_count(asked, facts))
    tokens = token_options(facts, workers_certain=bool(certain)) if facts else {}
    parts = [
        _head(asked, facts),
        _command(asked, facts, tokens),
        _mounts(asked),
        _resources(asked, facts),
        _ranks(asked, facts),
        data_loader_block(facts, workers_certain=certain),
        _kubernetes(asked),
    ]
    return "\n".join(line for part in parts for line in part) + "\n"


def job_name(script: Path | None) -> str:
    """Return what a job is called: as its script, or as the folder of one that every project has."""
    if script is None:
        return "my-job"
    word = script.stem if script.stem.lower() not in GENERIC else script.resolve().parent.name
    name = re.sub(r"[^a-z0-9]+", "-", word.lower())[:MAX_NAME].strip("-") or "train"
    return name if len(name) > 1 else f"{name}-job"  # an engine's container names have two characters


def scalar(text: str) -> str:
    """Return a string as YAML reads it back, in double quotes unless it is plainly a word or a path."""
    if _PLAIN.fullmatch(text) and not _WORDS.fullmatch(text):
        return text
    return yaml_string(text)


def comment_lines(text: str) -> list[str]:
    """Return a text as comments of a job file."""
    return [f"# {line}" for line in textwrap.wrap(text, 110, break_long_words=False, break_on_hyphens=False)]


def _head(asked: DraftOptions, facts: ScriptFacts | None) -> Iterator[str]:
    read = f", drafted from {asked.program}" if facts else ""
    yield from comment_lines(
        f"A job file of trainlaunch{read}. `trainlaunch plan` shows what follows from it; docs/job-file.md has every "
        "field."
    )
    yield f"name: {scalar(asked.name)}"
    field = named(JOB, "image")
    example = field.example if field else ""
    told = "" if asked.image else " # the image that has the script's packages, with a fixed tag or digest"
    yield f"image: {scalar(asked.image or example)}{told}"


def _command(asked: DraftOptions, facts: ScriptFacts | None, tokens: dict[str, list[Option]]) -> Iterator[str]:
    overrides = token_overrides(facts) if facts else []
    named = [*tokens, *(each.partition("{")[2].rstrip("}") for each in overrides)]
    if named:
        *others, last = (f"{{{token}}}" for token in dict.fromkeys(named))
        become = (
            f"{', '.join(others)} and {last} become the planned values"
            if others
            else f"{last} becomes the planned value"
        )
        yield from comment_lines(f"{become} inside the container.")
    word = [facts.subcommand] if facts and facts.subcommand else []
    argv = [*_start(asked, facts), *word, *arguments(tokens), *overrides]
    yield f"command: [{', '.join(scalar(each) for each in argv)}]"
    if facts is None:
        yield from comment_lines(
            'Pass the planned values to the script\'s own options, like "--workers={num_workers}".'
        )
        return
    variables = [f'{name}: "{token}"' for name, token in token_variables(facts).items()]
    told = "which the script reads"
    if facts.start is not None and facts.start.path:
        variables.append(f"PYTHONPATH: {WORKSPACE}/{facts.start.path}".removesuffix("/."))
        told = (
            "which has modules that the script imports" if len(variables) == 1 else f"{told}, as Python does the path"
        )
    if variables:
        yield f"env: {{{', '.join(variables)}}} # {told}"
    yield from _other_options(facts, tokens)
    for note in facts.notes:
        yield from comment_lines(note)


def _other_options(facts: ScriptFacts, tokens: dict[str, list[Option]]) -> Iterator[str]:
    """Yield what the script's command line takes beside the tokens."""
    given = {each.dest for options in tokens.values() for each in options}
    left = [each for each in facts.options if each.dest not in given]
    own = f"{Path(facts.path).name}:"  # of a module's options nobody knows that its parser is the script's
    required = [each for each in left if each.required and (each in facts.required or each.place.startswith(own))]
    names = [each.flag or each.dest for each in required]
    if required:
        certain = all(each in facts.required for each in required)  # else it may be of one command, or on a condition
        told = "The script also requires {}" if certain else "Its parser declares {} as required"
        yield from comment_lines(f"{told.format(', '.join(names))}: add what it needs to command.")
    rest = [f"{each.flag} ({each.default})" if each.default is not None else each.flag for each in left if each.flag]
    rest = [" ".join(each.split()) for each in rest if each.split(" ")[0] not in names]
    if rest:
        more = f", and {len(rest) - _MAX_OPTIONS} more" if len(rest) > _MAX_OPTIONS else ""
        yield from comment_lines(f"Its other options and their defaults: {', '.join(rest[:_MAX_OPTIONS])}{more}.")


def _start(asked: DraftOptions, facts: ScriptFacts | None) -> list[str]:
    """Return the words that start the script, by DeepSpeed's launcher where only that gives it its rank."""
    if facts is None or not facts.by_deepspeed:
        return ["python", *_program(asked.program)]
    module = ["--module"] if asked.program.startswith("-m ") else []
    return ["deepspeed", f"--num_gpus={asked.gpu_count or 1}", *module, asked.program.removeprefix("-m ")]


def _program(program: str) -> list[str]:
    """Return the words that run a file, or a module that is named behind -m."""
    return program.split(" ", 1) if program.startswith("-m ") else [program]


def _mounts(asked: DraftOptions) -> Iterator[str]:
    yield f"working_dir: {scalar(f'{WORKSPACE}/{asked.folder}'.rstrip('/'))}"
    yield "mounts: # a source is relative to this file; add the folder of the data"
    yield f"  - {{type: bind, source: {scalar(asked.source)}, target: {WORKSPACE}}}"


def _resources(asked: DraftOptions, facts: ScriptFacts | None) -> Iterator[str]:
    stated = {"cpus": asked.cpus, "memory": asked.memory, "gpus": asked.gpus}
    given = [f"{name}: {resource(name, value)}" for name, value in stated.items() if value is not None]
    if given:
        yield f"resources: {{{', '.join(given)}}}"
    words = {
        "cpus": "cpus: 8 (a limit; workers and threads follow from it)",
        "memory": "memory: 32Gi (a limit, /dev/shm included)",
        "gpus": "gpus: 1" + (f" ({facts.cuda} names CUDA)" if facts and facts.cuda else ""),
    }
    missing = [words[name] for name, value in stated.items() if value is None]
    if missing:
        required = " Kubernetes requires cpus and memory." if None in (asked.cpus, asked.memory) else ""
        yield from comment_lines(f"resources not set: {', '.join(missing)}.{required}")


def resource(name: str, value: str) -> str:
    """Return a flag's value in a flow mapping: ids of GPUs as a list, anything else as it is spelled."""
    if name == "gpus" and "," in value:
        return f"[{', '.join(scalar(each.strip()) for each in value.split(','))}]"
    return value if re.fullmatch(r"-?[\w.]+", value) else scalar(value)


def _ranks(asked: DraftOptions, facts: ScriptFacts | None) -> Iterator[str]:
    if asked.gpus == ALL_GPUS:
        yield "ranks_per_container: 1 # the training processes; all GPUs are another number on each machine"
    elif facts is None:
        return
    elif facts.starts_ranks:
        yield from _started_ranks(asked, facts)
    elif facts.by_deepspeed and facts.rank_option:
        yield from comment_lines(
            f"deepspeed starts that many processes and passes each its {facts.rank_option.flag} "
            f"({facts.rank_option.place}), which torchrun doesn't."
        )
    elif facts.distributed:
        yield from _rank_by_option(facts)
        yield from comment_lines(
            f"{facts.distributed} joins the processes that a launcher starts. This block starts that many with "
            "torchrun, in front of the same command:"
        )
        certain = facts.needs_launcher or asked.gpu_count > 1
        number = _rank_count(asked, facts) if certain else 2
        yield f"{'' if certain else '# '}torchrun: {{nproc_per_node: {number}}}"
    elif asked.gpu_count > 1:
        yield "ranks_per_container: 1 # the training processes"
        yield from comment_lines(
            f"Nothing in the script starts or joins several processes, so it trains on one of {asked.gpu_count} GPUs. "
            "Once it does (torch.distributed, Accelerate), write instead of that line: "
            f"torchrun: {{nproc_per_node: {asked.gpu_count}}}"
        )


def _rank_by_option(facts: ScriptFacts) -> Iterator[str]:
    if facts.rank_option is not None:
        yield from comment_lines(
            f"{facts.rank_option.place} takes the rank from {facts.rank_option.flag}, which torchrun doesn't pass: let "
            "the script read LOCAL_RANK before it runs on several GPUs."
        )


def _rank_count(asked: DraftOptions, facts: ScriptFacts | None) -> int:
    """Return the ranks that the draft sets, where it sets some; a launcher that must be there starts at least 2."""
    if facts is None:
        return 1
    if facts.starts_ranks:
        return facts.ranks or 1
    if facts.by_deepspeed:
        return asked.gpu_count or 1
    if facts.distributed and (facts.needs_launcher or asked.gpu_count > 1):
        return asked.gpu_count or 2
    return 1


def _started_ranks(asked: DraftOptions, facts: ScriptFacts) -> Iterator[str]:
    """Yield what the job says of ranks that its script starts itself."""
    starter = facts.starts_ranks.partition(": ")[2]
    if facts.ranks is not None:
        told = f"the default of {facts.ranks_option}, which " if facts.ranks_option else ""
        does = "follows" if told else "starts that many processes itself"
        yield f"ranks_per_container: {facts.ranks} # {told}{facts.starts_ranks} {does}"
    elif starter == "Ray Train":
        yield from comment_lines(
            f"{facts.starts_ranks} starts as many processes as its ScalingConfig says, which isn't known: say "
            "ranks_per_container: 2, or how many they are."
        )
    elif facts.ranks_condition:
        yield from comment_lines(
            f"{facts.starts_ranks} starts one process per GPU itself, but only if {facts.ranks_condition}: say "
            "ranks_per_container: 1 where it doesn't."
        )
    else:
        yield from comment_lines(
            f"{facts.starts_ranks} starts one process per GPU itself; where their number is not that of the GPUs, "
            "say ranks_per_container: 2."
        )
    if starter == "Ray Train":
        yield from comment_lines(
            "Ray's workers are those ranks where the script starts Ray in this container; a cluster has them "
            "elsewhere, where this file doesn't reach. Ray also keeps objects in /dev/shm, by default up to 30 % of "
            "the memory: shm_extra: [{name: ray}] makes room for that. With ray.init(object_store_memory=…) set size "
            "there too, a tenth more."
        )


def _kubernetes(asked: DraftOptions) -> Iterator[str]:
    yield from comment_lines(
        "A node of Kubernetes has no copy of the folder: code brings the files that git tracks in it, read-only and up "
        "to 900 KiB."
    )
    yield "# target_overrides:"
    yield "#   kubernetes:"
    yield f"#     mounts: [{{type: code, source: {scalar(asked.source)}, target: {WORKSPACE}}}]"
