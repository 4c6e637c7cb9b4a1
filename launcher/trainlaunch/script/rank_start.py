"""What starts the ranks of a script: itself, as Lightning and mp.spawn do, or a launcher that it expects.

Lightning and mp.spawn start the ranks themselves; the Trainer and Accelerate join those that torchrun starts.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import NamedTuple

from trainlaunch.script.frameworks import HUGGING_FACE, LIGHTNING, Calls, first_text
from trainlaunch.script.program import Program
from trainlaunch.script.resolve import Scope
from trainlaunch.script.script_facts import Option, Value
from trainlaunch.script.source import PythonSource

_OF_LAUNCHERS = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE"})
_EXPECTS_TORCHRUN = (
    "init_process_group", "DistributedDataParallel", "FullyShardedDataParallel", "fully_shard", "init_device_mesh",
)  # fmt: skip
_LONGEST = 60  # characters of a condition that a comment quotes
SPAWN = "torch.multiprocessing.spawn"
# What starts ranks, the ends and beginnings of its names, and the keyword that says how many.
_STARTERS: tuple[tuple[str, tuple[str, ...], tuple[str, ...], str], ...] = (
    ("Lightning", ("Trainer", "Fabric"), LIGHTNING, "devices"),
    ("Lightning", ("LightningCLI",), LIGHTNING, ""),
    ("Ray Train", ("TorchTrainer",), ("ray.",), "num_workers"),
    (SPAWN, ("multiprocessing.spawn",), ("torch.",), "nprocs"),
)


class RankStart(NamedTuple):
    """What starts ranks and where; how many as far as the text says, and the option whose default that is.

    `condition` is what its text asks before, `` where nothing.
    """

    words: str
    ranks: int | None
    flag: str
    condition: str = ""


class RankOption(NamedTuple):
    """The option that each rank gets its number by; `by_deepspeed`: the script is one of DeepSpeed's."""

    option: Option
    by_deepspeed: bool


def starts_ranks(program: Program) -> RankStart | None:
    """Return what starts the ranks of a program itself, None where nothing does."""
    calls = Calls(program)
    for name, ends, of, counting in _STARTERS:
        for call, source in calls.named(*ends, of=of):
            scope = Scope(program, source, source.function(call))
            stated = {each.arg: each.value for each in call.keywords if each.arg}
            if name == "Ray Train":
                stated |= _scaling(calls, stated)
            told = stated.get(counting) if name != SPAWN or runs_in_any_case(program, source, call) else None
            value = scope.value(told) if told is not None else None
            option = value.option if value is not None and value.option and not value.option.changed else None
            words, flag = f"{source.place(call)}: {name}", option.flag if option else ""
            return RankStart(words, _count(value), flag, _condition(source, call) if name == SPAWN else "")
    return _processes(calls)


def _condition(source: PythonSource, call: ast.Call) -> str:
    """Return the text of what decides whether a call is made, `` where nothing does or it is long."""
    tests = (ast.unparse(each.test) for each in source.around(call) if isinstance(each, ast.If))
    return next((each for each in tests if "__name__" not in each and len(each) <= _LONGEST), "")


def _scaling(calls: Calls, stated: Mapping[str, ast.expr]) -> dict[str, ast.expr]:
    """Return the keywords of a trainer's ScalingConfig, wherever it is made."""
    made = stated.get("scaling_config")
    if not isinstance(made, ast.Call):
        made = next((call for call, _ in calls.named("ScalingConfig")), None)
    return {each.arg: each.value for each in made.keywords if each.arg} if made is not None else {}


def _processes(calls: Calls) -> RankStart | None:
    """Return the loop that starts a process for each rank, in a program whose processes join a group."""
    if not calls.first("init_process_group", of=("torch.",)):
        return None
    for call, source in calls.named("Process", of=("torch.multiprocessing.", "multiprocessing.")):
        for loop in (each for each in source.around(call) if isinstance(each, (ast.For, ast.ListComp))):
            over = loop.iter if isinstance(loop, ast.For) else loop.generators[0].iter
            if isinstance(over, ast.Call) and source.dotted(over.func) == "range" and len(over.args) == 1:
                value = Scope(calls.program, source, source.function(call)).value(over.args[0])
                return RankStart(f"{source.place(call)}: multiprocessing.Process", _count(value), "")
    return None


def _count(value: Value | None) -> int | None:
    number = value.number if value else None
    if value is None or (value.option is not None and value.option.changed):
        return None
    if isinstance(number, list):
        return len(number) or None
    return number if isinstance(number, int) and not isinstance(number, bool) and number > 0 else None


def expects_torchrun(program: Program) -> str:
    """Return the place where a script expects torchrun to have started one process per GPU, `` without one."""
    calls = Calls(program)
    for ends, of in (
        (_EXPECTS_TORCHRUN, ("torch.",)),
        (("Accelerator",), ("accelerate.",)),
        (("Trainer",), HUGGING_FACE),
    ):
        if place := calls.first(*ends, of=of):
            return place
    return first_text(program, {"LOCAL_RANK"})


def rank_by_option(program: Program) -> RankOption | None:
    """Return the option that a script takes its rank from, where it doesn't read the variable that torchrun sets."""
    option = program.options.get("local_rank")
    if option is None or any(_reads(source, node, "LOCAL_RANK") for source in program.sources for node in source.nodes):
        return None
    calls = Calls(program)
    ends = ("deepspeed.initialize", "deepspeed.init_distributed", "deepspeed.add_config_arguments")
    return RankOption(option, bool(calls.first(*ends)))


def _reads(source: PythonSource, node: ast.AST, name: str) -> bool:
    """Whether a node reads a variable of the environment; that a script sets it is no reading."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Load) and ast.unparse(node.slice) == repr(name)
    named = isinstance(node, ast.Call) and bool(node.args) and ast.unparse(node.args[0]) == repr(name)
    return named and source.dotted(node.func).endswith((".get", "getenv", ".pop"))  # type: ignore[attr-defined]


def needs_launcher(program: Program) -> str:
    """Return where a script surely ends if no launcher has set RANK, `` where it may not."""
    calls = Calls(program)
    for call, source in calls.named("distributed.init_process_group", of=("torch.",)):
        told = {each.arg for each in call.keywords}
        if not {"rank", "world_size", "init_method", "store", None} & told and runs_in_any_case(program, source, call):
            return source.place(call)
    for source in program.sources:
        for node in source.nodes:
            if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
                continue
            read = isinstance(node.ctx, ast.Load) and source.dotted(node.value) == "os.environ"
            if read and node.slice.value in _OF_LAUNCHERS and runs_in_any_case(program, source, node):
                return source.place(node)
    return ""


def runs_in_any_case(program: Program, source: PythonSource, node: ast.AST) -> bool:
    """Whether nothing decides, here or where its function is called, that a node of the script itself isn't run."""
    if not program.runs(source, node):
        return False
    function = source.function(node)
    if any(decides(each) for each in source.around(node)):
        return False
    if function is None:
        return source is program.sources[0]
    if source.class_of(function) is not None or any(isinstance(each, ast.Return) for each in function.body[:-1]):
        return False
    sites = program.calls.get(function.name, [])
    return bool(sites) and not any(decides(each) for call, where in sites for each in where.around(call))


def decides(node: ast.AST) -> bool:
    """Whether a node decides if what is below it is done; `if __name__ == "__main__"` doesn't, of a script."""
    if isinstance(node, ast.If):
        return "__name__" not in ast.unparse(node.test)
    return isinstance(node, (ast.IfExp, ast.Try, ast.BoolOp, ast.Match, ast.While))


def shared_settings(program: Program) -> dict[str, str]:
    """Return data_loader's settings that the script makes for all loaders at once; none that a condition decides."""
    found = {}
    for field, ends, allowed in (
        ("sharing_strategy", "set_sharing_strategy", {"file_descriptor", "file_system"}),
        ("multiprocessing_context", "set_start_method", {"fork", "spawn", "forkserver"}),
    ):
        calls = [*Calls(program).named(ends)]
        for call, source in calls if not any(_on_condition(source, each) for each, source in calls) else ():
            stated = call.args[0] if call.args else next((each.value for each in call.keywords), None)
            value = Scope(program, source, source.function(call)).value(stated) if stated is not None else None
            if value and value.literal in allowed:
                found[field] = str(value.literal)
    if any(runs_in_any_case(program, source, call) for call, source in Calls(program).named(SPAWN)):
        found.setdefault("multiprocessing_context", "spawn")  # what its ranks were started by is their default
    return found


def _on_condition(source: PythonSource, call: ast.Call) -> bool:
    """Whether something decides if a setting is made; that it isn't made yet is no condition."""
    return any(
        decides(each) and not isinstance(each, ast.Try) and "get_start_method" not in ast.unparse(each)
        for each in source.around(call)
    )
