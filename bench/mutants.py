"""Changes functions of five rooms one at a time, and counts which changes the tests of their room notice.

The tests are imported and collected once. Each mutant is a fork of that process in which the function has another
`__code__`, and runs those tests that call the function, up to the first that fails. What is computed when modules are
imported is therefore not mutated.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import collections
import contextlib
import copy
import gc
import hashlib
import importlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import NamedTuple

import pytest

ROOMS = ("plan", "formats", "verify", "diagnose", "policy")
PACKAGE = Path("launcher/trainlaunch")
HIT = "note_mutant_hit"  # a builtin, as which each function that is mutated says that it was called
SWAPPED = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
AT_BOUNDARY = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
}  # fmt: skip
DELETED = (ast.AugAssign, ast.Raise, ast.Continue, ast.Break)


class Mutant(NamedTuple):
    """One change of one function."""

    room: str
    module: Path  # within the tree
    line: int  # the function's first, as its code object has it
    name: str
    at: int  # the changed line
    change: str
    function: ast.FunctionDef | ast.AsyncFunctionDef  # changed
    key: str  # decides whether it is drawn: of the seed, the function's text and the change alone


class Outcome(NamedTuple):
    """What became of a mutant."""

    word: str  # killed, "killed (timeout)", survived, "survived (never called)"
    by: str  # the first test that failed


def comparisons(node: ast.AST) -> Iterator[ast.AST]:
    """Turn a comparison round."""
    if isinstance(node, ast.Compare):
        yield ast.Compare(node.left, [SWAPPED[type(node.ops[0])](), *node.ops[1:]], node.comparators)


def boundaries(node: ast.AST) -> Iterator[ast.AST]:
    """Move a boundary by one."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in AT_BOUNDARY:
        yield ast.Compare(node.left, [AT_BOUNDARY[type(node.ops[0])](), *node.ops[1:]], node.comparators)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield ast.Constant(node.value + 1)
        yield ast.Constant(node.value - 1)


def conditions(node: ast.AST) -> Iterator[ast.AST]:
    """Negate a condition, or leave one of its clauses out."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    if isinstance(node, ast.BoolOp):
        for index in range(len(node.values)):
            rest = node.values[:index] + node.values[index + 1 :]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        changed = copy.copy(node)
        changed.test = ast.UnaryOp(ast.Not(), node.test)
        yield changed


def returns(node: ast.AST) -> Iterator[ast.AST]:
    """Return None."""
    if (
        isinstance(node, ast.Return)
        and node.value
        and not (isinstance(node.value, ast.Constant) and not node.value.value)
    ):
        yield ast.Return(ast.Constant(None))


def sums(node: ast.AST) -> Iterator[ast.AST]:
    """Compute something else."""
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        yield ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)


def strings(node: ast.AST) -> Iterator[ast.AST]:
    """Say something else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield ast.Constant(node.value + "?")


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Leave a statement out."""
    if isinstance(node, DELETED) or (isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)):
        yield ast.Pass()


OPERATORS: tuple[Callable[[ast.AST], Iterator[ast.AST]], ...] = (
    comparisons, boundaries, conditions, returns, sums, strings, statements,
)  # fmt: skip


def draw(seed: str, number: int, rooms: tuple[str, ...]) -> list[Mutant]:
    """Return so many mutants. Of each function one change by each operator stands to be drawn."""
    everyone: list[Mutant] = []
    for room in rooms:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            for name, function in functions_of(ast.parse(path.read_text())):
                everyone += changes_of(seed, room, path, name, function)
    return sorted(sorted(everyone, key=lambda mutant: mutant.key)[:number], key=lambda each: each[:5])


def functions_of(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield the functions and methods of a module; one inside another is changed as its part."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield prefix + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from functions_of(child, f"{prefix}{child.name}.")


def changes_of(
    seed: str, room: str, path: Path, name: str, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Mutant]:
    """Yield one mutant of a function for each operator that finds something to change."""
    text = ast.unparse(function)
    line = min([function.lineno, *(each.lineno for each in function.decorator_list)])
    for operator in OPERATORS:
        found = []
        for place in places_of(function):
            for number, changed in enumerate(operator(place)):
                key = hashlib.sha256(
                    repr((seed, name, text, operator.__name__, len(found), number)).encode()
                ).hexdigest()
                found.append((key, place, changed))
        if found:
            key, place, changed = min(found, key=lambda each: each[0])
            at = getattr(place, "lineno", line)
            yield Mutant(room, path, line, name, at, said(place, changed), replaced(function, place, changed), key)


def places_of(function: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes of a function's body but docstrings and annotations, in the order in which they stand."""
    for field, value in ast.iter_fields(function):
        if field in ("annotation", "returns", "decorator_list", "args"):
            continue
        for child in value if isinstance(value, list) else [value]:
            docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if isinstance(child, ast.AST) and not docstring:
                yield child
                yield from places_of(child)


def replaced(
    function: ast.FunctionDef | ast.AsyncFunctionDef, place: ast.AST, changed: ast.AST
) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """Return a copy of a function in which one node is another."""

    class At(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return (
                ast.copy_location(copy.deepcopy(changed), node)
                if node is place
                else self.generic_visit(copy.copy(node))
            )

        def generic_visit(self, node: ast.AST) -> ast.AST:
            for field, value in ast.iter_fields(node):
                if isinstance(value, list):
                    setattr(node, field, [self.visit(each) if isinstance(each, ast.AST) else each for each in value])
                elif isinstance(value, ast.AST):
                    setattr(node, field, self.visit(value))
            return node

    copied = At().visit(function)
    assert isinstance(copied, (ast.FunctionDef, ast.AsyncFunctionDef))
    return ast.fix_missing_locations(copied)


def said(place: ast.AST, changed: ast.AST) -> str:
    """Return a change in a line: each side's first."""
    before, after = (ast.unparse(ast.fix_missing_locations(copy.deepcopy(each))) for each in (place, changed))
    return f"{before.splitlines()[0]}  →  {after.splitlines()[0]}"


def swap(mutant: Mutant, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """Give the live function the code of this one, whatever decorators made of it."""
    module = ast.parse(mutant.module.read_text())

    class At(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
            same = (node.name, node.lineno) == (function.name, function.lineno)
            return function if same else self.generic_visit(node)

        visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    path = str(mutant.module.resolve())
    wanted = (function.name, mutant.line)
    (code,) = (each for each in codes_in(compile(At().visit(module), path, "exec")) if is_of(each, wanted))
    live = [each for each in gc.get_objects() if type(each) is FunctionType and each.__code__.co_filename == path]
    for each in live:
        if is_of(each.__code__, wanted):
            each.__code__ = code


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Yield all code objects of a module."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from codes_in(each)


def is_of(code: CodeType, wanted: tuple[str, int]) -> bool:
    return (code.co_name, code.co_firstlineno) == wanted


class Judge:
    """A plugin of pytest that, instead of running what was collected once, runs it for each mutant."""

    def __init__(self, mutants: list[Mutant], cpu_seconds: int) -> None:
        self.mutants = mutants
        self.cpu_seconds = cpu_seconds
        self.outcomes: list[Outcome] = []
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the first failure."""
        if report.failed and not self.failed:
            self.failed = report.nodeid

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Ask who calls the functions, then judge each mutant by those tests."""
        gc.unfreeze()  # else `swap` would not see what was frozen after the collection
        for mutant in self.mutants:
            importlib.import_module(".".join(mutant.module.with_suffix("").parts[1:]).removesuffix(".__init__"))
        items = {room: [item for item in session.items if f"tests/{room}/" in item.nodeid] for room in ROOMS}
        calling = {}
        for room in ROOMS:
            own = [index for index, mutant in enumerate(self.mutants) if mutant.room == room]
            if own:
                calling |= json.loads(in_fork(lambda own=own, room=room: self.callers(own, items[room])) or "{}")
        for index, mutant in enumerate(self.mutants):
            callers = set(calling.get(str(index), ()))
            chosen = [item for item in items[mutant.room] if item.nodeid in callers]
            self.outcomes.append(self.judge(mutant, chosen))
            print(mutant.room, f"{mutant.module.name}:{mutant.at}", *self.outcomes[-1], file=sys.stderr, flush=True)
        return True

    def callers(self, own: list[int], items: list[pytest.Item]) -> str:
        """Return which tests call the functions of these mutants, as JSON; those that fail anyway call none."""
        calls: dict[int, list[str]] = collections.defaultdict(list)
        called: set[int] = set()
        setattr(builtins, HIT, called.add)
        for index in own:
            function = copy.deepcopy(self.mutants[index].function)
            original = original_of(self.mutants[index])
            same = [other for other in own if self.mutants[other][1:4] == self.mutants[index][1:4]]
            function.body = [*(noted(other) for other in same), *original.body]
            swap(self.mutants[index], ast.fix_missing_locations(function))
        for item, after in zip(items, [*items[1:], None], strict=True):
            called.clear()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            for index in called if not self.failed else ():
                calls[index].append(item.nodeid)
            if self.failed:
                print("fails by itself:", self.failed, file=sys.stderr)
                self.failed = ""
        return json.dumps(calls)

    def judge(self, mutant: Mutant, items: list[pytest.Item]) -> Outcome:
        """Run these tests against a mutant, up to the first failure."""
        if not items:
            return Outcome("survived (never called)", "")

        def run() -> str:
            resource.setrlimit(resource.RLIMIT_CPU, (self.cpu_seconds, self.cpu_seconds))
            signal.alarm(20 * self.cpu_seconds)  # one that waits uses no CPU
            swap(mutant, mutant.function)
            for item, after in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if self.failed:
                    return f"killed {self.failed}"
            return "survived "

        said = in_fork(run)
        return Outcome(*said.split(" ", 1)) if said else Outcome("killed (timeout)", "")


def original_of(mutant: Mutant) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """Return a mutant's function as it is in its file."""
    for name, function in functions_of(ast.parse(mutant.module.read_text())):
        if (name, function.lineno) == (mutant.name, mutant.function.lineno):
            return function
    raise LookupError(mutant.name)


def noted(index: int) -> ast.stmt:
    """Return the statement that says that a function was called."""
    return ast.Expr(ast.Call(ast.Name(HIT, ast.Load()), [ast.Constant(index)], []))


def in_fork(work: Callable[[], str]) -> str:
    """Return what this returns in a fork of this process, which changes nothing here; "" if that died."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1):
            os.dup2(silent, stream)
        try:
            with open(writes, "wb") as pipe:  # noqa: PTH123
                pipe.write(work().encode())
        finally:
            os._exit(0)
    os.close(writes)
    with open(reads, "rb") as pipe:  # noqa: PTH123
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


def main() -> int:
    """Draw, judge and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, default=Path(__file__).parents[1], help="another checkout")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--mutants", type=int, default=100)
    parser.add_argument("--rooms", nargs="+", choices=ROOMS, default=ROOMS)
    parser.add_argument("--cpu-seconds", type=int, default=60, help="a mutant that takes longer is killed")
    args = parser.parse_args()
    os.chdir(args.tree)
    sys.path.insert(0, str(PACKAGE.parent.resolve()))
    begun = time.process_time()
    judge = Judge(draw(args.seed, args.mutants, tuple(args.rooms)), args.cpu_seconds)
    tests = [f"tests/{room}" for room in args.rooms]
    options = ["-q", "-m", "not docker", "-p", "no:randomly", "-p", "no:cacheprovider"]
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):  # noqa: PTH123
        pytest.main([*options, "--rootdir=.", *tests], plugins=[judge])
    for room in args.rooms:
        words = collections.Counter(
            outcome.word for mutant, outcome in zip(judge.mutants, judge.outcomes, strict=True) if mutant.room == room
        )
        print(f"{room}: {', '.join(f'{number} {word}' for word, number in sorted(words.items()))}")
    for mutant, outcome in zip(judge.mutants, judge.outcomes, strict=True):
        if not outcome.word.startswith("killed"):
            print(f"{mutant.module}:{mutant.at} {mutant.name} {outcome.word}\n    {mutant.change}")
    print(f"{time.process_time() - begun:.0f} s of CPU, without those of the forks", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
