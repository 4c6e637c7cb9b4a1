"""The programs that start a job's training processes themselves, as its command or script calls them.

What is read is text: nothing is run. A count that only a shell, a config file or a host list could give is unknown.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from trainlaunch.job.shell_commands import commands_of, program_at
from trainlaunch.job.starter import AS_PLANNED, PER_GPU, Count, Starter


class _Program(NamedTuple):
    """How a program is told its number of processes.

    `option` sets it, as do `counts`. `flags` take no value and `pairs` two; any other option takes one. `each` are
    options of the number on each machine, which wins; `machines` of how many machines share the number; `elsewhere` are
    those with which the text doesn't tell it.
    """

    option: str
    counts: frozenset[str]
    flags: frozenset[str]
    unstated: Count = None
    each: frozenset[str] = frozenset()
    machines: frozenset[str] = frozenset()
    elsewhere: frozenset[str] = frozenset()
    pairs: frozenset[str] = frozenset()
    torch: bool = False


def _options(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TORCHRUN = _Program(
    option="--nproc_per_node",
    counts=frozenset(),
    flags=_options("--standalone -m --module --no_python --run_path --use_env --virtual_local_rank -h --help"),
    unstated=1,
    torch=True,
)
_ACCELERATE = _Program(
    option="--num_processes",
    counts=frozenset(),
    flags=_options(
        "--cpu --multi_gpu --tpu --ipex --use_cpu --use_xpu --use_mps_device --use_deepspeed --use_fsdp "
        "--use_megatron_lm --use_parallelism_config --same_network --no_python -m --module -q --quiet --debug "
        "--enable_cpu_affinity --downcast_bf16 --dynamo_use_dynamic --dynamo_use_fullgraph "
        "--dynamo_use_regional_compilation --tpu_cluster --no_tpu_cluster --tpu_use_cluster --tpu_use_sudo "
        "--fp8_use_autocast_during_eval -h --help"
    ),
    machines=_options("--num_machines"),
)
_DEEPSPEED = _Program(
    option="--num_gpus",
    counts=_options("--num_accelerators"),
    flags=_options(
        "--module --no_python --no_local_rank --no_ssh --no_ssh_check --force_multi --save_pid --bind_cores_to_rank "
        "--enable_elastic_training -h --help"
    ),
    unstated=PER_GPU,
    elsewhere=_options("-H --hostfile -i --include -e --exclude --num_nodes"),
)
_MPI = _Program(
    option="-n",
    counts=_options("--n -np --np -c"),
    flags=_options(
        "--allow_run_as_root --oversubscribe --use_hwthread_cpus --tag_output --timestamp_output --display_map "
        "--display_allocation --report_bindings --nolocal --nooversubscribe --do_not_launch --bind_to_core "
        "--bind_to_socket --quiet --verbose -q -v -d -l -prepend_rank --prepend_rank -h --help -V --version"
    ),
    each=_options("-npernode --npernode -N -ppn --ppn -perhost"),
    elsewhere=_options(
        "-H -host --host -hosts --hosts -hostfile --hostfile -machinefile --machinefile -f --app -configfile"
    ),
    pairs=_options("-mca --mca -gmca --gmca -env --env -genv --genv --prtemca --pmixmca"),
)
_PROGRAMS = {
    "torchrun": _TORCHRUN,
    "accelerate-launch": _ACCELERATE,
    "deepspeed": _DEEPSPEED,
    "mpirun": _MPI,
    "mpiexec": _MPI,
}
_MODULES = {
    "torch.distributed.run": _TORCHRUN,
    "torch.distributed.launch": _TORCHRUN,
    "accelerate.commands.launch": _ACCELERATE,
    "deepspeed.launcher.runner": _DEEPSPEED,
}
_PYTHON = re.compile(r"python[\d.]*")
_PYTHON_VALUES = _options("-W -X")
_SHELL = re.compile(r"(?:ba|da|a|z|k)?sh")


def calls_of(command: Sequence[str] | None, script: str | None, env: Mapping[str, str]) -> list[Starter]:
    """Return the calls that start ranks, in the order of the text."""
    calls = list(_calls(list(command or ()), "command", env, tokens=True))
    if script is not None:
        calls += _in_text(script, "script", env)
    return calls


def _calls(words: list[str], field: str, env: Mapping[str, str], *, tokens: bool) -> Iterator[Starter]:
    """Yield the calls of one command. `tokens`: it is argv, in which {nproc_per_node} is replaced."""
    at = program_at(words)
    if at is None:
        return
    if _SHELL.fullmatch(posixpath.basename(words[at])):
        text = _text_of_shell(words, at)
        if text is not None:
            yield from _in_text(words[text], f"{field}.{text}" if tokens else field, env)
        return
    call = _call(words, at, env, tokens=tokens)
    if call is not None:
        yield call if tokens else call._replace(field=field, in_text=True)


def _in_text(text: str, field: str, env: Mapping[str, str]) -> list[Starter]:
    calls, beside = [], False
    for command in commands_of(text):
        found = list(_calls(list(command.words), field, env, tokens=False))
        beside = beside or (bool(found) and command.background)
        calls += found
    # Of calls one after the other the largest counts; of calls beside each other nobody knows.
    return [each._replace(count=None) for each in calls] if beside and len(calls) > 1 else calls


def _text_of_shell(words: list[str], at: int) -> int | None:
    """Return where the text of `sh -c TEXT` stands, or None where a shell runs a file."""
    for index in range(at + 1, len(words) - 1):
        if not words[index].startswith(("-", "+")):
            return None
        if re.fullmatch(r"-[a-z]*c[a-z]*", words[index]):
            return index + 1
    return None


def _call(words: list[str], at: int, env: Mapping[str, str], *, tokens: bool) -> Starter | None:
    """Return the call of a known program at `at`; `tokens`: {nproc_per_node} is replaced there."""
    name, first = posixpath.basename(words[at]), at + 1
    program, field = _PROGRAMS.get(name), at
    if name == "accelerate" and words[first : first + 1] == ["launch"]:
        name, program, first = "accelerate launch", _ACCELERATE, first + 1
    elif _PYTHON.fullmatch(name):
        module = _module_at(words, first)
        if module is not None:
            program, field, first = _MODULES.get(words[module]), module, module + 1
            name = f"{name} -m {words[module]}"
    if program is None:
        return None
    option, count = _count(program, words[first:], env, tokens=tokens)
    return Starter(name, f"command.{field}", count, option, program.option, program.torch)


def _module_at(words: list[str], at: int) -> int | None:
    """Return where the module of `python … -m MODULE` stands; None for a script, a text or an interactive Python."""
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "-m":
            return at + 1 if at + 1 < len(words) else None
        if words[at] == "-c":
            return None
        at += 2 if words[at] in _PYTHON_VALUES else 1
    return None


def _count(program: _Program, words: list[str], env: Mapping[str, str], *, tokens: bool) -> tuple[str, Count]:
    """Return the option that sets the number of processes as it is typed, `` where none does, and the number."""
    stated = [(typed, _full_name(program, typed), value) for typed, value in _stated(program, words)]
    if program is _MPI and ":" in words:
        return "", None
    for typed, name, value in stated:
        if name in program.each:
            return typed, _number(value, tokens=tokens)
    for typed, name, value in stated:
        if name in program.elsewhere:
            return typed, _slots(value) if name in {"-i", "--include"} else None
    number: Count = program.unstated
    if program.torch and "PET_NPROC_PER_NODE" in env:
        number = _number(env["PET_NPROC_PER_NODE"], tokens=False)
    option, machines = "", "1"
    for typed, name, value in stated:
        if name in program.machines:
            machines = value
        elif name == program.option or name in program.counts:
            option, number = typed, _number(value, tokens=tokens)
    return option, _shared(number, machines)


def _shared(number: Count, machines: str) -> Count:
    """Return how many of `number` processes each of so many machines has."""
    if machines == "1" or not isinstance(number, int):
        return number if machines == "1" else None
    count = _number(machines, tokens=False)
    return number // count if isinstance(count, int) and number % count == 0 else None


def _stated(program: _Program, words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the options before the script that the program starts, each with its value."""
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        option, equals, value = words[at].partition("=")
        if equals:
            yield option, value
        elif _full_name(program, option) in program.pairs:
            at += 2
        elif _full_name(program, option) not in program.flags and at + 1 < len(words):
            if words[at + 1].endswith(".py"):  # a flag that is not known here
                return
            at += 1
            yield option, words[at]
        at += 1


def _full_name(program: _Program, option: str) -> str:
    """Return an option with underscores; argparse takes it abbreviated too."""
    name = option[:2] + option[2:].replace("-", "_")
    if program is not _MPI and len(name) > 4:
        for known in (program.option, *program.counts, *program.machines, *program.elsewhere):
            if known.startswith(name):
                return known
    return name


def _number(text: str, *, tokens: bool) -> Count:
    """Return what a value says of the number of processes."""
    if text.isascii() and text.isdecimal() and int(text) > 0:
        return int(text)
    if text == "gpu":
        return PER_GPU
    return AS_PLANNED if tokens and text == "{nproc_per_node}" else None


def _slots(value: str) -> Count:
    """Return how many devices `--include localhost:0,1` names; several hosts say nothing of this container."""
    match = re.fullmatch(r"localhost(?::(\d+(?:,\d+)*))?", value)
    if match is None:
        return None
    return len(match[1].split(",")) if match[1] else PER_GPU
