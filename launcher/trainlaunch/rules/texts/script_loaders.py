"""What workers of a training script's loaders share, lack or start, as its text shows it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainlaunch.diagnostics import Severity
from trainlaunch.rules.base.rule import Problem
from trainlaunch.rules.base.text_rule import text_rule
from trainlaunch.rules.sources.near_scripts import shown_by
from trainlaunch.rules.sources.scripts import (
    CUDA_FIX,
    CUDA_WHY,
    HANDLE_FIX,
    HANDLE_WHY,
    PICKLE_FIX,
    PICKLE_WHY,
    argument,
    datasets,
    has_workers,
    is_guarded,
    is_used,
    loaders,
    may_run_in_container,
    method,
    name_of,
    pickles,
    span_of,
)
from trainlaunch.rules.sources.source_text import SourceText

_OPENS = frozenset({"open", "io.open", "h5py.File", "lmdb.open", "tarfile.open", "zipfile.ZipFile", "sqlite3.connect"})
# Of which each process moves one offset, by seek and read; readers of HDF5 and LMDB read at places of their own.
_PAIR = 2  # a signal and its handler
_SHARED = frozenset({"open", "io.open", "tarfile.open", "zipfile.ZipFile"})
_MOVES = frozenset({"seek", "extractfile", "open"})  # beside those that read
# What keeps processes apart, opens anew in each, or expects the failure.
_ELSEWHERE = re.compile(r"worker_init_fn|Lock\(|getpid|__setstate__|pread|mmap|\braises\(")
_COUNTS = frozenset({"os.cpu_count", "cpu_count", "multiprocessing.cpu_count", "mp.cpu_count", "psutil.cpu_count"})


def _walk(node: ast.AST | None) -> Iterator[ast.AST]:
    return ast.walk(node) if node is not None else iter(())


@text_rule("TL340", Severity.ERROR)
def handle_shared_by_workers(file: SourceText) -> Iterator[Problem]:
    """The workers of a loader would share a handle."""
    for owner in datasets(file.tree) if has_workers(file.tree, least=2) else ():
        read = [each for each in _walk(method(owner, "__getitem__")) if isinstance(each, ast.Attribute)]
        stored = {name_of(each) for each in read if isinstance(each.ctx, ast.Store)}
        shared = {name_of(each) for each in read} - stored
        moved = {name_of(each.value) for each in read if each.attr.startswith("read") or each.attr in _MOVES}
        for name, value in _opened(method(owner, "__init__")):
            if name in shared:
                certain = (
                    name_of(value.func) in _SHARED
                    and is_used(file, owner.name)
                    and name in moved
                    and not _ELSEWHERE.search(file.text)
                    and f"{name}.close(" not in file.text
                )
                yield Problem(
                    f"{name} is opened in __init__ and read in __getitem__, so all workers share one handle",
                    HANDLE_FIX,
                    HANDLE_WHY,
                    span=span_of(file, value),
                    severity=None
                    if certain
                    else Severity.WARNING
                    if name_of(value.func) != "lmdb.open"
                    else Severity.INFO,
                )


def _opened(function: ast.FunctionDef | None) -> Iterator[tuple[str, ast.Call]]:
    """Yield the attributes of which the last that a function gives them is something that it opens."""
    given = [each for each in _walk(function) if isinstance(each, (ast.Assign, ast.AnnAssign))]
    last: dict[str, ast.expr | None] = {}
    for node in sorted(given, key=lambda each: each.lineno):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            last[name_of(target)] = node.value
    for name, value in last.items():
        if name.startswith("self.") and isinstance(value, ast.Call) and name_of(value.func) in _OPENS:
            yield name, value


@text_rule("TL341", Severity.ERROR)
def cuda_in_worker(file: SourceText) -> Iterator[Problem]:
    """What workers run moves something to the GPU."""
    owners = datasets(file.tree) if has_workers(file.tree) else ()
    spawned = re.search(r"spawn|forkserver|is_available\(\)|get_worker_info|\braises\(", file.text) if owners else None
    for owner in owners:
        inside = [*_walk(method(owner, "__getitem__"))]
        tests = (each for each in inside if isinstance(each, (ast.If, ast.IfExp, ast.Try)))
        tested = {id(inner) for each in tests for inner in ast.walk(each)}
        for node in inside:
            if isinstance(node, ast.Call) and _moves(node):
                certain = is_used(file, owner.name) and id(node) not in tested
                yield Problem(
                    "__getitem__ uses CUDA, and it runs in the workers of the loader",
                    CUDA_FIX,
                    CUDA_WHY,
                    span=span_of(file, node),
                    severity=Severity.INFO if spawned else None if certain else Severity.WARNING,
                )


def _moves(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    words = [each.value for each in call.args if isinstance(each, ast.Constant)]
    to_cuda = any(isinstance(each, str) and each.startswith("cuda") for each in words)
    return call.func.attr == "cuda" or (call.func.attr == "to" and to_cuda)


@text_rule("TL342", Severity.ERROR)
def seed_without_worker(file: SourceText) -> Iterator[Problem]:
    """Torch's seed is divided by 2**32."""
    for node in _walk(file.tree):
        # Outside of a loader's worker there is one process, and nothing to tell apart.
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.FloorDiv) or not _is_32_bits(node.right):
            continue
        if isinstance(node.left, ast.Call) and name_of(node.left.func).rpartition(".")[2] == "initial_seed":
            yield Problem(
                "initial_seed() // 2**32 is the same number in every worker",
                "write initial_seed() % 2**32",
                "the seeds of workers differ in their low bits alone, which the division drops",
                span=span_of(file, node),
                severity=None if _seeds_worker(file.tree, node) else Severity.INFO,
            )


def _seeds_worker(tree: ast.AST | None, number: ast.expr) -> bool:
    """Return whether a number is all that a function of workers seeds with, perhaps by a name."""
    functions = [each for each in _walk(tree) if isinstance(each, ast.FunctionDef) and "worker" in each.name]
    given = [each for function in functions for each in _walk(function) if isinstance(each, (ast.Assign, ast.Call))]
    names = {name_of(each.targets[0]) for each in given if isinstance(each, ast.Assign) and each.value is number}
    seeds = (each for each in given if isinstance(each, ast.Call) and name_of(each.func).endswith("seed"))
    values = [value for each in seeds for value in (*each.args, *(keyword.value for keyword in each.keywords))]
    values += [
        each.args[0] for each in values if isinstance(each, ast.Call) and name_of(each.func) == "int" and each.args
    ]
    return any(each is number or name_of(each) in names - {""} for each in values)


def _is_32_bits(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value == 2**32
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Pow):
        return False
    return [each.value for each in (node.left, node.right) if isinstance(each, ast.Constant)] == [2, 32]


@text_rule("TL343", Severity.ERROR)
def lambda_to_spawned_worker(file: SourceText) -> Iterator[Problem]:
    """A loader's own call hands a lambda to spawned workers."""
    for call in loaders(file.tree):
        method_of_start = pickles(call)
        for name in ("collate_fn", "worker_init_fn") if method_of_start else ():
            value = argument(call, name)
            if isinstance(value, ast.Lambda):
                yield Problem(
                    f"{name} is a lambda, which can't be pickled for workers that {method_of_start} starts",
                    PICKLE_FIX,
                    PICKLE_WHY,
                    span=span_of(file, value),
                )


@text_rule("TL344", Severity.ERROR)
def spawn_without_main_guard(file: SourceText) -> Iterator[Problem]:
    """The module itself runs through a loader whose workers import it."""
    tree = file.tree
    if tree is None or is_guarded(tree) or "current_process" in file.text:
        return
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for call in loaders(statement):
            if pickles(call) and _is_run_through(tree, statement, call):
                yield Problem(
                    f"{pickles(call)} imports this script in each worker, and it has no main guard",
                    'run the training in a function, called under if __name__ == "__main__":',
                    "a worker that imports the script would start workers again, which Python refuses",
                    span=span_of(file, call),
                )


def _is_run_through(tree: ast.Module, made: ast.stmt, call: ast.Call) -> bool:
    """Return whether a loop of the module itself goes through the loader."""
    names = {name_of(each) for each in made.targets} if isinstance(made, ast.Assign) and made.value is call else set()
    for statement in tree.body:
        for node in ast.walk(statement) if not isinstance(statement, (ast.FunctionDef, ast.ClassDef)) else ():
            if isinstance(node, ast.For) and (node.iter is call or (name_of(node.iter) in names - {""})):
                return True
    return False


@text_rule("TL376", Severity.WARNING)
def sigterm_ends_with_zero(file: SourceText) -> Iterator[Problem]:
    """A handler of SIGTERM ends the process as if training were done."""
    named = {each.name: each for each in _walk(file.tree) if isinstance(each, ast.FunctionDef)}
    trains = shown_by(file.text).trains
    for call in _walk(file.tree):
        if not isinstance(call, ast.Call) or name_of(call.func) != "signal.signal" or len(call.args) < _PAIR:
            continue
        handler = named.get(name_of(call.args[1]).rpartition(".")[2])
        ends = [each for each in _walk(handler) if isinstance(each, ast.Call) and _ends_with_zero(each)]
        if name_of(call.args[0]).endswith("SIGTERM") and ends and (trains or _saves(handler)):
            yield Problem(
                "the handler of SIGTERM ends with 0, as finished training does",
                "end with 143, or another code that restart.on_exit_codes names",
                "on Kubernetes the Job of an evicted pod is then Complete, and nothing trains on",
                span=span_of(file, ends[0]),
                severity=None if _saves(handler) and may_run_in_container(file) else Severity.INFO,
            )


def _saves(handler: ast.AST | None) -> bool:
    """Return whether a handler calls what saves a checkpoint; servers and benchmarks end with 0 too."""
    called = (name_of(each.func) for each in _walk(handler) if isinstance(each, ast.Call))
    return any(re.search(r"save|checkpoint|ckpt", each.rpartition(".")[2], re.IGNORECASE) for each in called)


def _ends_with_zero(call: ast.Call) -> bool:
    value = call.args[0] if call.args else None
    zero = value is None or (isinstance(value, ast.Constant) and value.value in {0, None})
    return name_of(call.func) in {"sys.exit", "exit", "os._exit", "quit"} and zero


@text_rule("TL345", Severity.WARNING)
def workers_of_host(file: SourceText) -> Iterator[Problem]:
    """A loader's workers are the machine's CPUs."""
    for call in loaders(file.tree):
        value = argument(call, "num_workers")
        if isinstance(value, ast.Call) and name_of(value.func) in _COUNTS:
            yield Problem(
                f"num_workers is {name_of(value.func)}(), the host's CPUs whatever the container may use",
                'write the number of its CPUs, or int(os.environ["TRAINLAUNCH_NUM_WORKERS"])',
                "cpu_count() knows no quota of a container; each worker costs memory and /dev/shm",
                span=span_of(file, value),
                severity=None if may_run_in_container(file) else Severity.INFO,
            )
