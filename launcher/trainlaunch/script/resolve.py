"""What an expression of a script stands for: a literal, an option of its command line, or nobody knows."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from trainlaunch.script.script_facts import AUTO, KNOWN, OPTION, UNKNOWN, VARIABLE, Option, Value
from trainlaunch.script.source import Function, PythonSource

_DEEPEST = 5
_MAX_CALLS = 8  # more would hardly agree, and each may lead to as many again
_SUMS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_ONE_TARGET = (ast.AnnAssign, ast.NamedExpr)
_OURS = {"TRAINLAUNCH_NUM_WORKERS", "TRAINLAUNCH_BATCH_SIZE", "TRAINLAUNCH_PREFETCH_FACTOR"}


@dataclass(frozen=True)
class Program:
    """The script with the modules that it imports from its folder, and its options by name."""

    sources: tuple[PythonSource, ...]
    options: Mapping[str, Option]

    @cached_property
    def calls(self) -> Mapping[str, list[tuple[ast.Call, PythonSource]]]:
        """The calls of each function or class, by its name."""
        found: dict[str, list[tuple[ast.Call, PythonSource]]] = {}
        for source in self.sources:
            for node, called in source.calls:
                found.setdefault(called.rpartition(".")[2], []).append((node, source))
        return found

    @cached_property
    def dead(self) -> frozenset[Function]:
        """The functions that nothing which runs names; methods and decorated ones may be a framework's to call."""
        plain: dict[str, list[tuple[Function, PythonSource]]] = {}
        named: dict[Function | None, set[str]] = {None: set()}
        for source in self.sources:
            for node in source.nodes:
                if isinstance(node, Function) and not node.decorator_list and source.class_of(node) is None:
                    plain.setdefault(node.name, []).append((node, source))
        known = {function for each in plain.values() for function, _ in each}
        for source in self.sources:
            for node in source.nodes:
                word = _named_by(node)
                if word in plain:
                    owner = next((each for each in source.around(node) if each in known), None)
                    named.setdefault(owner, set()).add(word)
        alive: set[Function] = set()
        waiting = list(named[None])
        while waiting:
            for function, _ in plain.get(waiting.pop(), ()):
                if function not in alive:
                    alive.add(function)
                    waiting += named.get(function, ())
        return frozenset(known - alive)

    def runs(self, source: PythonSource, node: ast.AST) -> bool:
        """Whether something may run a node: it stands in no function that nothing calls."""
        return not any(each in self.dead for each in source.around(node))


def _named_by(node: ast.AST) -> str:
    """Return the name that a node refers to, in the text of a string too; `` for any other."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.alias) and node.asname:
        return node.name.rpartition(".")[2]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


@dataclass(frozen=True)
class Scope:
    """Where an expression stands: its file, the function around it, and by which call that function runs."""

    program: Program
    source: PythonSource
    function: Function | None = None
    called: Mapping[Function, tuple[ast.Call, PythonSource]] = field(default_factory=dict)
    depth: int = 0

    def value(self, node: ast.expr) -> Value:
        """Return what an expression stands for."""
        if self.depth > _DEEPEST:
            return _unknown(node)
        try:
            return Value(KNOWN, ast.literal_eval(node))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return self._named(node) or _unknown(node)

    def _named(self, node: ast.expr) -> Value | None:
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Subscript):
            return self._item(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.BinOp):
            return self._sum(node)
        return None

    def _deeper(self, source: PythonSource, node: ast.AST) -> Scope:
        return replace(self, source=source, function=source.function(node), depth=self.depth + 1)

    def _name(self, name: str) -> Value | None:
        function = self.function
        while function is not None:
            assigned = _assigned(name, function)
            if assigned:
                return self._only(assigned)
            if name in _parameters(function):
                return self._parameter(function, name)
            function = self.source.function(function)
        for source in (self.source, *self.program.sources):
            constants = _assigned(name, source.tree)
            if constants:
                return replace(self, source=source, function=None, depth=self.depth + 1)._only(constants)
        return None

    def _only(self, expressions: list[ast.expr]) -> Value | None:
        """Return the value of the one assignment; with several nobody knows which one holds."""
        return replace(self, depth=self.depth + 1).value(expressions[0]) if len(expressions) == 1 else None

    def _parameter(self, function: Function, name: str) -> Value | None:
        """Return what the function's calls pass, where they agree; else an option of click of that name."""
        owner = self.source.class_of(function)
        if function in self.called:
            calls = [self.called[function]]
        else:
            calls = self.program.calls.get(owner.name if owner and function.name == "__init__" else function.name, [])
        if len(calls) > _MAX_CALLS:
            return None
        option = self.program.options.get(name)
        if option is not None and function.decorator_list:
            return Value(OPTION, option=option)
        passed = [self._passed(function, name, call, source) for call, source in calls]
        return passed[0] if passed and all(each == passed[0] for each in passed) else None

    def _passed(self, function: Function, name: str, call: ast.Call, source: PythonSource) -> Value | None:
        stated = {each.arg: each.value for each in call.keywords if each.arg}
        names = [each.arg for each in (*function.args.posonlyargs, *function.args.args) if each.arg != "self"]
        if name not in stated and name in names and names.index(name) < len(call.args):
            stated[name] = call.args[names.index(name)]
        if name in stated:
            return self._deeper(source, call).value(stated[name])
        if any(each.arg is None for each in call.keywords) or any(isinstance(each, ast.Starred) for each in call.args):
            return None  # what is spread into the call may hold it
        default = _parameters(function)[name]
        return self.value(default) if default is not None else None

    def _attribute(self, node: ast.Attribute) -> Value | None:
        owner = node.value
        held = isinstance(owner, ast.Name) and owner.id == "self"
        held = held or (isinstance(owner, ast.Attribute) and owner.attr == "hparams")
        if held and self.function is not None:
            return self._of_self(node.attr)
        if isinstance(owner, ast.Name):
            found = self._constant(owner.id, node.attr)
            if found is not None:
                return found
        option = self.program.options.get(node.attr)
        return Value(OPTION, option=option) if option else None

    def _constant(self, owner: str, name: str) -> Value | None:
        """Return a constant of a class, or of a module that stands beside the script."""
        module = self.source.imports.get(owner, "").replace(".", "/")
        for source in self.program.sources:
            classes = [each for each in source.tree.body if isinstance(each, ast.ClassDef) and each.name == owner]
            holders: list[ast.AST] = [source.tree] if source.name == f"{module}.py" else [*classes]
            for holder in holders:
                if found := _assigned(name, holder):
                    return replace(self, source=source, function=None)._only(found)
        return None

    def _sum(self, node: ast.BinOp) -> Value | None:
        values = [replace(self, depth=self.depth + 1).value(each) for each in (node.left, node.right)]
        left, right = (each.literal if each.kind == KNOWN else None for each in values)
        reckon = _SUMS.get(type(node.op))
        if reckon is None or not isinstance(left, int) or not isinstance(right, int) or 0 in (left, right):
            return None
        return Value(KNOWN, reckon(left, right))

    def _of_self(self, name: str) -> Value | None:
        """Return what `self.name` was given: in __init__, or by save_hyperparameters the parameter of that name."""
        owner = self.source.class_of(self.function) if self.function else None
        start = next((each for each in ast.walk(owner) if _is_init(each)), None) if owner else None
        if not isinstance(start, Function):
            return None
        given = [
            each.value
            for each in ast.walk(start)
            if isinstance(each, ast.Assign) and any(ast.unparse(target) == f"self.{name}" for target in each.targets)
        ]
        inside = replace(self, function=start, depth=self.depth + 1)
        if given:
            return inside._only(given)
        return inside._parameter(start, name) if name in _parameters(start) else None

    def _item(self, node: ast.Subscript) -> Value | None:
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if "environ" in ast.unparse(node.value):
            return _of_environment(key, None)
        if isinstance(key, str) and key in self.program.options:
            return Value(OPTION, option=self.program.options[key])
        if isinstance(node.value, ast.Name):
            found = self._name(node.value.id)
            if found and isinstance(found.literal, dict) and key in found.literal:
                return Value(KNOWN, found.literal[key])
        return None

    def _call(self, node: ast.Call) -> Value | None:
        called = self.source.dotted(node.func)
        first = node.args[0] if node.args else None
        if first is None:
            return None
        if called in {"int", "bool"} and len(node.args) == 1:
            return self.value(first)
        if called in {"os.environ.get", "os.getenv"} and isinstance(first, ast.Constant):
            default = node.args[1] if len(node.args) > 1 else None
            return _of_environment(first.value, self.value(default).literal if default is not None else None)
        return None


def _of_environment(name: object, default: object) -> Value | None:
    """Return what a variable of the environment gives; a default of digits is that number."""
    if not isinstance(name, str):
        return None
    if name in _OURS:
        return Value(AUTO, text=name)
    number = isinstance(default, str) and default.isascii() and default.isdecimal()
    return Value(VARIABLE, int(str(default)) if number else default, text=name)


def _assigned(name: str, owner: ast.AST) -> list[ast.expr]:
    """Return what is assigned to a name in a function, a class's body or a module's, inner functions left out.

    A loop's variable, an unpacked one and `+=` count as an assignment of something that nobody knows.
    """
    found: list[ast.expr] = []
    stored = 0
    waiting = list(ast.iter_child_nodes(owner))
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, (Function, ast.ClassDef, ast.Lambda)):
            continue
        waiting += ast.iter_child_nodes(node)
        stored += isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, _ONE_TARGET) else []
        )
        value = getattr(node, "value", None)
        if any(isinstance(each, ast.Name) and each.id == name for each in targets) and isinstance(value, ast.expr):
            found.append(value)
    return found if len(found) == stored else [*found, ast.Name(name), ast.Name(name)]


def _parameters(function: Function) -> dict[str, ast.expr | None]:
    """Return each parameter with its default."""
    plain = [*function.args.posonlyargs, *function.args.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(function.args.defaults))
    found = dict(zip((each.arg for each in plain), [*defaults, *function.args.defaults], strict=True))
    keywords = zip((each.arg for each in function.args.kwonlyargs), function.args.kw_defaults, strict=True)
    return {**found, **dict(keywords)}


def _is_init(node: ast.AST) -> bool:
    return isinstance(node, Function) and node.name == "__init__"


def _unknown(node: ast.expr) -> Value:
    text = " ".join(ast.unparse(node).split())
    return Value(UNKNOWN, text=text if len(text) <= 60 else f"{text[:57]}...")
