"""Frameworks that a script uses: Hugging Face's Trainer, Lightning, Accelerate, torch.distributed.

Lightning and mp.spawn start the ranks themselves; the Trainer and Accelerate join those that torchrun starts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from trainlaunch.script.program import Program
from trainlaunch.script.resolve import Scope
from trainlaunch.script.script_facts import KNOWN, OPTION, Loader, Option, Value
from trainlaunch.script.source import PythonSource

_HUGGING_FACE = ("transformers.", "trl.", "sentence_transformers.", "setfit.")
_LIGHTNING = ("lightning.", "pytorch_lightning.", "lightning_fabric.")
_OF_TRAINER = {
    "num_workers": ("dataloader_num_workers", 0),
    "prefetch_factor": ("dataloader_prefetch_factor", None),
    "pin_memory": ("dataloader_pin_memory", None),
    "persistent_workers": ("dataloader_persistent_workers", None),
}
_BATCHES = {"train": "per_device_train_batch_size", "eval": "per_device_eval_batch_size"}
_TRAINERS_BATCH = 8
_OF_LAUNCHERS = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE"})
_EXPECTS_TORCHRUN = (
    "init_process_group", "DistributedDataParallel", "FullyShardedDataParallel", "fully_shard", "init_device_mesh",
)  # fmt: skip


_SPAWN = "torch.multiprocessing.spawn"
# What starts ranks, the ends and beginnings of its names, and the keyword that says how many.
_STARTERS: tuple[tuple[str, tuple[str, ...], tuple[str, ...], str], ...] = (
    ("Lightning", ("Trainer", "Fabric"), _LIGHTNING, "devices"),
    ("Lightning", ("LightningCLI",), _LIGHTNING, ""),
    ("Ray Train", ("TorchTrainer",), ("ray.",), "num_workers"),
    (_SPAWN, ("multiprocessing.spawn",), ("torch.",), "nprocs"),
)


class RankStart(NamedTuple):
    """What starts ranks and where; how many as far as the text says, and the option whose default that is."""

    words: str
    ranks: int | None
    flag: str


class Calls(NamedTuple):
    """Every call of a program with its whole name."""

    program: Program

    def named(self, *ends: str, of: tuple[str, ...] = ("",)) -> Iterator[tuple[ast.Call, PythonSource]]:
        """Yield the calls whose name ends in one of `ends` and begins with one of `of`."""
        for source in self.program.sources:
            for node, called in source.calls:
                if called.startswith(of) and called.endswith(ends) and self.program.runs(source, node):
                    yield node, source

    def first(self, *ends: str, of: tuple[str, ...] = ("",)) -> str:
        """Return the place of the first such call, `` without one."""
        return next((source.place(node) for node, source in self.named(*ends, of=of)), "")


def hugging_face(program: Program) -> tuple[tuple[Loader, ...], tuple[Option, ...], tuple[str, ...]]:
    """Return the Trainer's loaders, the options that HfArgumentParser gives the script, and notes."""
    calls = Calls(program)
    made = next(calls.named("Trainer", of=_HUGGING_FACE), None)
    if made is None:
        return (), (), ()
    parsed = calls.first("HfArgumentParser", "TrlParser", of=_HUGGING_FACE)
    options = _trainer_options(parsed) if parsed else ()
    stated = _training_arguments(calls, Scope(program, made[1]))
    by_name = {each.dest: Value(OPTION, option=each) for each in options} | stated
    place = made[1].place(made[0])
    loaders = tuple(Loader(name, _trainer_settings(by_name, name), place) for name in _BATCHES)
    return loaders, options, tuple(_trainer_notes(by_name, place))


def _trainer_options(place: str) -> tuple[Option, ...]:
    defaults = {"dataloader_num_workers": 0, **dict.fromkeys(_BATCHES.values(), _TRAINERS_BATCH)}
    return tuple(Option(f"--{name}", name, value, False, place) for name, value in defaults.items())


def _training_arguments(calls: Calls, scope: Scope) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for call, source in calls.named("TrainingArguments", "Config", of=_HUGGING_FACE):
        inside = Scope(scope.program, source, source.function(call))
        found |= {each.arg: inside.value(each.value) for each in call.keywords if each.arg}
    return found


def _trainer_settings(by_name: Mapping[str, Value], loader: str) -> dict[str, Value]:
    settings = {"batch_size": by_name.get(_BATCHES[loader], Value(KNOWN, _TRAINERS_BATCH))}
    for field, (name, default) in _OF_TRAINER.items():
        if name in by_name:
            settings[field] = by_name[name]
        elif default is not None:
            settings[field] = Value(KNOWN, default)
    return settings


def _trainer_notes(by_name: Mapping[str, Value], place: str) -> Iterator[str]:
    workers = by_name.get("dataloader_num_workers")
    if workers is None or workers.kind != OPTION:
        yield (
            f"{place}: Hugging Face's Trainer loads with dataloader_num_workers, 0 unless set. Let the script take "
            "it from its command line (HfArgumentParser) and pass --dataloader_num_workers={num_workers}."
        )
    stated = by_name.get("gradient_accumulation_steps", Value(KNOWN, 1)).number
    steps = stated if isinstance(stated, int) and stated > 0 else 1
    yield (
        f"{place}: on CPU the Trainer uses 2 × gradient_accumulation_steps + 1 batches: "
        f"data_loader.batches_held: {2 * steps + 1}. Both its loaders count together: it evaluates while the one "
        "that trains is alive."
    )


def look_ahead(program: Program) -> tuple[str, ...]:
    """Return the note of a script whose loaders Accelerate prepares."""
    calls = Calls(program)
    place = calls.first("Accelerator", of=("accelerate.",)) and calls.first(".prepare", ".prepare_data_loader")
    return (f"{place}: on CPU Accelerate fetches one batch ahead: data_loader.batches_held: 3.",) if place else ()


def starts_ranks(program: Program) -> RankStart | None:
    """Return what starts the ranks of a program itself, None where nothing does."""
    calls = Calls(program)
    for name, ends, of, counting in _STARTERS:
        for call, source in calls.named(*ends, of=of):
            scope = Scope(program, source, source.function(call))
            stated = {each.arg: each.value for each in call.keywords if each.arg}
            if name == "Ray Train":
                stated |= _scaling(calls, stated)
            told = stated.get(counting) if name != _SPAWN or _in_any_case(program, source, call) else None
            value = scope.value(told) if told is not None else None
            option = value.option if value is not None and value.option and not value.option.changed else None
            return RankStart(f"{source.place(call)}: {name}", _count(value), option.flag if option else "")
    return _processes(calls)


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
        (("Trainer",), _HUGGING_FACE),
    ):
        if place := calls.first(*ends, of=of):
            return place
    return _first_text(program, {"LOCAL_RANK"})


def needs_launcher(program: Program) -> str:
    """Return where a script surely ends if no launcher has set RANK, `` where it may not."""
    calls = Calls(program)
    for call, source in calls.named("distributed.init_process_group", of=("torch.",)):
        told = {each.arg for each in call.keywords}
        if not {"rank", "world_size", "init_method", "store", None} & told and _in_any_case(program, source, call):
            return source.place(call)
    for source in program.sources:
        for node in source.nodes:
            if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
                continue
            read = isinstance(node.ctx, ast.Load) and source.dotted(node.value) == "os.environ"
            if read and node.slice.value in _OF_LAUNCHERS and _in_any_case(program, source, node):
                return source.place(node)
    return ""


def _in_any_case(program: Program, source: PythonSource, node: ast.AST) -> bool:
    """Whether nothing decides, here or where its function is called, that a node of the script itself isn't run."""
    if not program.runs(source, node):
        return False
    function = source.function(node)
    if any(_decides(each) for each in source.around(node)):
        return False
    if function is None:
        return source is program.sources[0]
    if source.class_of(function) is not None or any(isinstance(each, ast.Return) for each in function.body[:-1]):
        return False
    sites = program.calls.get(function.name, [])
    return bool(sites) and not any(_decides(each) for call, where in sites for each in where.around(call))


def _decides(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return "__name__" not in ast.unparse(node.test)
    return isinstance(node, (ast.IfExp, ast.Try, ast.BoolOp, ast.Match, ast.While))


def names_cuda(program: Program) -> str:
    """Return the place where the script first names CUDA, `` without one."""
    return _first_text(program, {"cuda", "cuda:0"}) or Calls(program).first(".cuda")


def _first_text(program: Program, texts: set[str]) -> str:
    for source in program.sources:
        for node in source.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in texts:
                return source.place(node)
    return ""


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
    if any(_in_any_case(program, source, call) for call, source in Calls(program).named(_SPAWN)):
        found.setdefault("multiprocessing_context", "spawn")  # what its ranks were started by is their default
    return found


def _on_condition(source: PythonSource, call: ast.Call) -> bool:
    """Whether something decides if a setting is made; that it isn't made yet is no condition."""
    return any(
        _decides(each) and not isinstance(each, ast.Try) and "get_start_method" not in ast.unparse(each)
        for each in source.around(call)
    )
