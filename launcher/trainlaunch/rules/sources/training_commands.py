"""What commands say of training: whether they train, how many DataLoader workers they set, and what a shell's text
does to it: who gets its signals, and whose exit code is seen.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from trainlaunch.formats.docker.shell_lexer import statements
from trainlaunch.formats.workload import Known, Value, Workload, stated
from trainlaunch.job.shell_commands import commands_of
from trainlaunch.job.shm_owners import as_started
from trainlaunch.job.spec import JobSpec
from trainlaunch.rules.sources.programs import OTHER, SERVING, TRAINING, YOLO, Argv, hands_on_training, program, work_of
from trainlaunch.script.given_options import given_to, option_at

SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh"})
_WORKERS = re.compile(
    r"--?(?!pre|text)(?:[\w.]*[-_.])?(?:num[-_]?workers|(?:data[-_]?)?loader[-_](?:num[-_])?workers)(?:=(.*))?"
)
OPTION_OF_WORKERS = re.compile(  # `--workers` is a server's as often as a loader's
    r"--?(?!pre|text)(?:[\w.]*[-_.])?(?:num[-_]?workers|workers|(?:data[-_]?)?loader[-_](?:num[-_])?workers)(?:=(.*))?"
)
_OF_RAY = re.compile(r"(?:^|(?<![xa])[_-])(?:ray|rllib)(?=[_-]|\.py$)")  # workers play episodes; not of an x-ray
OVERRIDE_OF_WORKERS = re.compile(r"\+{0,2}(?:[\w/]+\.)*(?:\w*_)?num_workers=(.*)")  # Hydra's
# What one worker has, or servers of parameters beside it: of such a command num_workers are pods, actors or nodes.
_OF_ACTORS = re.compile(
    r"--?(?:[\w.]*[-_.])?(?:worker[-_](?:image|pod|resources?|cpus?|gpus?|memory|nodes?|hosts?)\w*"
    r"|(?:num[-_])?(?:cpus?|gpus?|resources?|memory|envs?)[-_]per[-_]worker|(?:num[-_])?ps(?:[-_]\w+)?)(?:=.*)?"
)
_RANKS = re.compile(r"--?(?:nproc[-_]per[-_]node|num[-_]gpus)(?:=(.*))?")
_PROCESSES = re.compile(r"--num[-_]processes(?:=(.*))?")
_MACHINES = re.compile(r"--num[-_]machines(?:=(.*))?")
_BATCH = re.compile(  # of training; one of evaluation alone says nothing of it
    r"--?(?:(?:per[-_](?:device|gpu)|data(?:set)?|train(?:ing)?|micro|mini|global)[-_.]){0,3}batch(?:[-_]?size)?(?:=.*)?"
    r"|batch=.*"
)
_OF_YOLO = re.compile(r"workers=(\d{1,3})")
_PREFETCH = re.compile(r"--?(?:[\w.]*[-_.])?prefetch[-_]factor(?:=(.*))?")
VARIABLES_OF_WORKERS = re.compile(r"(?:\w+_)?(?:NUM_?WORKERS|DATALOADER_WORKERS)")
_PROGRAM = re.compile(r"(?:/?[\w.-]+/)*(?:python[\d.]*|torchrun|accelerate|deepspeed|uv|poetry|conda)")
_DEEPEST = 3


def argv_of(workload: Workload, entrypoint: Argv = (), command: Argv = ()) -> Argv:
    """Return the words of a workload's process, those of vLLM's image with its ENTRYPOINT.

    `entrypoint` and `command` are the words as they are written, for those of which a variable decides a part: what
    the other words say holds all the same.
    """
    first, rest = stated(workload.entrypoint), stated(workload.command)
    words = (*(entrypoint if first is None else first), *(command if rest is None else rest))
    return as_started(stated(workload.image), words)


def argvs_of(argv: Argv) -> tuple[Argv, ...]:
    """Return each command that a process runs: its argv, or those inside the text of a shell."""
    return tuple(_inside(argv, 0))


def commands_in(text: str) -> tuple[Argv, ...]:
    """Return the words of each command of a shell text; what a shell would expand stands in `<>`."""
    return tuple(each.words for each in commands_of(text, marked=True))


def _inside(argv: Argv, depth: int) -> Iterator[Argv]:
    text = shell_text(argv)
    if text is None or depth > _DEEPEST:
        if argv:
            yield argv
        return
    for each in commands_in(text):
        yield from _inside(each, depth + 1)


def shell_text(argv: Argv) -> str | None:
    """Return the text that an argv has a shell run, as in `sh -c TEXT`; None where it runs none."""
    if not argv or posixpath.basename(argv[0]) not in SHELLS:
        return None
    for index, word in enumerate(argv[1:], start=1):
        if not word.startswith("-"):
            return None
        if re.fullmatch(r"-[a-z]*c", word):
            rest = argv[index + 1 :] if argv[index + 1 : index + 2] != ("--",) else argv[index + 2 :]
            return rest[0] if rest else None
    return None


def lone_program(argv: Argv) -> str | None:
    """Return the program that a shell runs alone: the text of -c is one, and its own arguments stand behind it."""
    if not argv or posixpath.basename(argv[0]) not in SHELLS:
        return None
    flag = next((index for index, each in enumerate(argv[1:], 1) if not re.fullmatch(r"-[a-bd-z]+", each)), len(argv))
    if flag + 2 >= len(argv) or not re.fullmatch(r"-[a-z]*c", argv[flag]):
        return None
    text, behind = argv[flag + 1], argv[flag + 2]
    return text if _PROGRAM.fullmatch(text) and not re.fullmatch(r"-?(?:ba|da|a|z)?sh|_|--|-", behind) else None


def text_of_job(job: JobSpec) -> tuple[str, str] | None:
    """Return what a job has a shell run, with the field that says it; None where its command runs no shell's text."""
    if job.script is not None:
        return job.script, "script"
    text = shell_text(job.command or ())
    return None if text is None else (text, "command")


def program_of(argv: Argv) -> str:
    """Return the name of a command's program, behind wrappers and variables; empty where there is none."""
    return program(argv).name


def is_training(argv: Argv) -> bool:
    """Return whether a command trains by its words: a launcher of ranks, or a script named after training."""
    return work_of(argv)[0] == TRAINING


def stated_workers(argvs: Iterable[Argv], env: Mapping[str, Value[str]]) -> int | None:
    """Return the DataLoader workers that commands or variables set, the most of several; None where none do.

    A variable is one of a DataLoader's only where a command trains: servers have the same.
    """
    argvs = tuple(argvs)
    found = [number for argv in argvs for number in _workers_of(argv)]
    found += [
        int(value.value)
        for name, value in (env.items() if any(map(is_training, argvs)) else ())
        if VARIABLES_OF_WORKERS.fullmatch(name) and isinstance(value, Known) and re.fullmatch(r"\d{1,4}", value.value)
    ]
    return max(found, default=None)


def loader_workers(argvs: Iterable[Argv]) -> int | None:
    """Return the DataLoader workers that commands alone set, the most of several; None where none does."""
    return max((number for argv in argvs for number in _workers_of(argv)), default=None)


def stated_prefetch(argvs: Iterable[Argv]) -> int:
    """Return the batches that each worker prefetches: what a command sets, the least of several, or torch's 2."""
    found = [int(each) for argv in argvs for each in _values_of(argv, _PREFETCH) if re.fullmatch(r"[1-9]\d{0,2}", each)]
    return min(found, default=2)


def stated_batch(argvs: Iterable[Argv]) -> int | None:
    """Return the samples of a batch that commands set, the most of several; None where none does."""
    found = [int(each) for argv in argvs for each in _values_of(argv, _BATCH) if re.fullmatch(r"[1-9]\d{0,4}", each)]
    return max(found, default=None)


def stated_ranks(argvs: Iterable[Argv]) -> int | None:
    """Return the training processes that a launcher starts here, the most of several; None where none says a number."""
    found = [number for argv in argvs for number in _ranks_of(argv)]
    return max(found, default=None)


def _ranks_of(argv: Argv) -> Iterator[int]:
    for each in _values_of(argv, _RANKS):
        if re.fullmatch(r"[1-9]\d{0,2}", each):
            yield int(each)
    machines = next(iter(_values_of(argv, _MACHINES)), "1")
    for each in _values_of(argv, _PROCESSES):  # of all machines together
        if re.fullmatch(r"[1-9]\d{0,2}", each) and re.fullmatch(r"[1-9]\d{0,2}", machines):
            yield max(1, int(each) // int(machines))


def _values_of(argv: Argv, flag: re.Pattern[str]) -> Iterator[str]:
    """Yield the values of a flag."""
    for index, word in enumerate(argv):
        if flag.fullmatch(word):
            yield option_at(argv, index)[1] or ""


def _workers_of(argv: Argv) -> Iterator[int]:
    kind, signs = work_of(argv)
    if program(argv).name == YOLO and kind == TRAINING and not yolo_on_cpu(argv):
        yield from (int(match[1]) for match in map(_OF_YOLO.fullmatch, argv) if match)
    meant = program(argv).script or hands_on_training(argv)
    of_actors = any(map(_OF_ACTORS.fullmatch, argv)) or _OF_RAY.search(posixpath.basename(program(argv).script))
    if kind in {SERVING, OTHER} or not meant or of_actors:
        return
    for index, word in enumerate(argv):
        match = _WORKERS.fullmatch(word) or (OPTION_OF_WORKERS.fullmatch(word) if signs else None)
        override = OVERRIDE_OF_WORKERS.fullmatch(word)
        value = override[1] if override else ""
        if match:
            value = option_at(argv, index)[1] or ""
        if re.fullmatch(r"\d{1,4}", value):
            yield int(value)


def names_cpu(argv: Sequence[str]) -> bool:
    """Return whether a command names a device without loaders' workers, where Ultralytics trains."""
    joined = {value for _, value in given_to(argv, ("device", "--device"))}
    return not {"cpu", "mps"}.isdisjoint(joined)


def yolo_on_cpu(argv: Argv) -> bool:
    """Return whether a command trains with Ultralytics on the CPU, where it starts no worker whatever sets some."""
    return program(argv).name == YOLO and names_cpu(argv)


def is_python(argv: Argv) -> bool:
    """Return whether a command starts Python."""
    return re.fullmatch(r"python[\d.]*|.*\.py", program_of(argv)) is not None


BACKGROUND = "training runs in the background, and `wait` ends with 0 whatever it ended with"
BACKGROUND_WHY = "a plain wait returns 0, and the shell passes no signal on"
PIPELINE_WHY = "a pipeline's status is that of its last command"
HANDLED = re.compile(r"\b(?:trap|exec|wait)\b")
_OPERATORS = frozenset({"<&>", "<&&>", "<||>", "<|>", "<(>", "<)>"})
_MARKED = re.compile(r"<(\$[^<>]*)>")  # what a shell would expand
_SAY_NOTHING = frozenset({"", "echo", "date", "printf", "deactivate", "done", "fi", "}", "module", "sleep", "true"})
_WAIT = re.compile(r"(?:^|[;&\n])[^\S\n]*wait[^\S\n]*(?:$|[;\n])")


class Pipe(NamedTuple):
    """A training command on the left of a pipe, its program, and the program that it is piped into."""

    command: str
    program: str
    into: str


def hiding_pipe(text: str) -> Pipe | None:
    """Return the first pipe of a shell's text that hides how training ended."""
    if "pipefail" in text or "PIPESTATUS" in text:
        return None
    for command, into in pairwise(commands_of(text)):
        if command.after in {"|", "|&"} and is_training(command.words):
            typed = text[command.start : into.start].rstrip().removesuffix(command.after)
            return Pipe(" ".join(typed.split()), command.words[0], into.words[0])
    return None


def waits_in_vain(text: str) -> bool:
    """Return whether a shell's text trains in the background, and ends as a plain `wait` for that does.

    A program beside training may be a server, for which `wait` waits for ever.
    """
    waits = [*_WAIT.finditer(text)] if "&" in text else []
    if not waits or "trap" in text or not all(map(_says_nothing, commands_in(text[waits[-1].end() :]))):
        return False
    behind = [argv for words in statements(text) for argv in _background(words)]
    return bool(behind) and all(map(is_training, behind))


def _says_nothing(argv: Argv) -> bool:
    """Return whether a command behind `wait` leaves a script's exit code as that of `wait`."""
    ends = argv[0] == "exit" and "".join(argv[1:2]).strip("<>")[:1] in {"", "0", "$"}
    return ends or program(argv).name in _SAY_NOTHING


def _background(words: list[str]) -> Iterator[Argv]:
    """Yield the commands of a statement behind which `&` stands."""
    start = 0
    for index, word in enumerate(words):
        if word == "<&>":
            yield from commands_in(" ".join(_MARKED.sub(r"\1", each) for each in words[start:index]))[-1:]
        if word in _OPERATORS:
            start = index + 1


def waiting_shell(text: str) -> tuple[str, str] | None:
    """Return the training program that a shell's text waits for, and the one that follows it; None where none does."""
    if HANDLED.search(text):
        return None
    commands = commands_in(text)
    trains = next((index for index, each in enumerate(commands) if is_training(each)), None)
    if trains is None or trains == len(commands) - 1 or re.search(r"\|(?!\|)|&(?!&)(?!\d)(?<!>&)", _unpaired(text)):
        return None
    return commands[trains][0], commands[trains + 1][0]


def _unpaired(text: str) -> str:
    """Return the text without `&&`, `||` and redirections, so that a pipe or a background job stands out."""
    return re.sub(r"&&|\|\||[0-9]?>&[0-9-]?|&>>?", " ", text)
