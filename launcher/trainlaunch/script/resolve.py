"""What an expression of a script stands for: a literal, an option of its command line, or nobody knows."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import NamedTuple

from trainlaunch.script.assignments import assigned, is_always, is_fallback, is_init, parameters, returned
from trainlaunch.script.config_files import Config
from trainlaunch.script.program import Program
from trainlaunch.script.script_facts import CONFIG, KNOWN, OPTION, UNKNOWN, Value, of_environment
from trainlaunch.script.source import Function, PythonSource
from trainlaunch.script.systems import on_linux

_DEEPEST = 6
_MAX_CALLS = 8  # more would hardly agree, and each may lead to as many again
_SUMS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_READERS = frozenset({"json.load", "json.loads", "yaml.full_load", "yaml.load", "yaml.safe_load", "yaml.unsafe_load"})
_WRAPPERS = frozenset({
    "AttrDict", "Box", "CfgNode", "ConfigDict", "DotMap", "EasyDict", "Munch", "Namespace", "SimpleNamespace", "create",
    "deepcopy", "dict", "edict", "merge", "munchify", "to_container", "to_object", "unsafe_merge",
})  # fmt: skip


class Scope(NamedTuple):
    """Where an expression stands: its file, the function around it, and by which call that function runs."""

    program: Program
    source: PythonSource
    function: Function | None = None
    called: Mapping[Function, tuple[ast.Call, PythonSource]] = {}
    depth: int = 0
    by_default: bool = False  # a sum is reckoned with what options have unless they are given

    def value(self, node: ast.expr) -> Value:
        """Return what an expression stands for."""
        if self.depth > _DEEPEST:
            return _unknown(node)
        try:
            return Value(KNOWN, ast.literal_eval(node))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return self._named(node) or _unknown(node)

    def config(self, node: ast.expr) -> Config | None:
        """Return the part of a configuration that an expression stands for; None for anything else."""
        found = self.value(node)
        return found.literal if isinstance(found.literal, Config) else None

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
        taken = on_linux(node) if isinstance(node, ast.IfExp) else None
        return self._replace(depth=self.depth + 1).value(taken) if taken is not None else None

    def _deeper(self, source: PythonSource, node: ast.AST) -> Scope:
        return self._replace(source=source, function=source.function(node), depth=self.depth + 1)

    def _name(self, name: str) -> Value | None:
        function = self.function
        while function is not None:
            given = assigned(name, function)
            if name in parameters(function) and not (given and is_always(name, function)):
                return self._unless(name, function, given)
            if given:
                return self._only(given)
            function = self.source.function(function)
        for source in (self.source, *self.program.sources):
            constants = assigned(name, source.tree)
            if constants:
                return self._replace(source=source, function=None, depth=self.depth + 1)._only(constants)
        return None

    def _unless(self, name: str, function: Function, given: list[ast.expr]) -> Value | None:
        """Return what a parameter is that its function may replace: where it got nothing, else nobody knows."""
        found = self._parameter(function, name)
        if not given or found is None:
            return found
        if not is_fallback(name, function):
            return None
        missing = found.kind == KNOWN and found.literal is None
        return self._only(given) if missing else found

    def _only(self, expressions: list[ast.expr]) -> Value | None:
        """Return the value of the one assignment; with several nobody knows which one holds."""
        return self._replace(depth=self.depth + 1).value(expressions[0]) if len(expressions) == 1 else None

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
        if option is not None and (function.decorator_list or self.source.place(function) == option.entry):
            return Value(OPTION, option=option)
        if self.program.hydra and any("hydra.main" in self.source.dotted(_called(e)) for e in function.decorator_list):
            return Value(CONFIG, self.program.hydra)
        if not calls and self.program.hydra and owner and function.name == "__init__":
            return self._instantiated(owner.name, name)
        passed = (self._passed(function, name, call, source) for call, source in calls)
        first = next(passed, None)
        return first if first is not None and all(each == first for each in passed) else None

    def _instantiated(self, owner: str, name: str) -> Value | None:
        """Return what Hydra passes to a class that exactly one part of its configuration names as _target_."""
        targets = ((part, part["_target_"]) for part in (self.program.hydra or Config()).parts())
        found = [part for part, target in targets if target and str(target.literal).rpartition(".")[2] == owner]
        return found[0][name] if len(found) == 1 else None

    def _passed(self, function: Function, name: str, call: ast.Call, source: PythonSource) -> Value | None:
        stated = {each.arg: each.value for each in call.keywords if each.arg}
        names = [each.arg for each in (*function.args.posonlyargs, *function.args.args) if each.arg != "self"]
        if name not in stated and name in names and names.index(name) < len(call.args):
            stated[name] = call.args[names.index(name)]
        if name in stated:
            return self._deeper(source, call).value(stated[name])
        if any(isinstance(each, ast.Starred) for each in call.args):
            return None
        for spread in (each.value for each in call.keywords if each.arg is None):
            part = self._deeper(source, call).config(spread)
            if part is None:
                return None  # what is spread into the call may hold it
            if (found := part[name]) is not None:
                return found
        default = parameters(function)[name]
        return self.value(default) if default is not None else None

    def _attribute(self, node: ast.Attribute) -> Value | None:
        owner = node.value
        part = self.config(owner)
        if part is not None:
            return None if node.attr in self.program.stored else part[node.attr]
        if node.attr == "value" and isinstance(owner, ast.Name) and owner.id in self.program.holders:
            return Value(OPTION, option=self.program.holders[owner.id])
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
                if found := assigned(name, holder):
                    return self._replace(source=source, function=None)._only(found)
        return None

    def _sum(self, node: ast.BinOp) -> Value | None:
        values = [self._replace(depth=self.depth + 1).value(each) for each in (node.left, node.right)]
        left, right = (each.number if self.by_default or each.kind == KNOWN else None for each in values)
        if any(each.option is not None and each.option.changed for each in values):
            return None
        reckon = _SUMS.get(type(node.op))
        if reckon is None or not isinstance(left, int) or not isinstance(right, int) or 0 in (left, right):
            return None
        return Value(KNOWN, reckon(left, right))

    def _of_self(self, name: str) -> Value | None:
        """Return what `self.name` was given: in __init__, or by save_hyperparameters the parameter of that name."""
        owner = self.source.class_of(self.function) if self.function else None
        start = next((each for each in ast.walk(owner) if is_init(each)), None) if owner else None
        if not isinstance(start, Function):
            return None
        given = [
            each.value
            for each in ast.walk(start)
            if isinstance(each, ast.Assign) and any(ast.unparse(target) == f"self.{name}" for target in each.targets)
        ]
        inside = self._replace(function=start, depth=self.depth + 1)
        if given:
            return inside._only(given)
        return inside._parameter(start, name) if name in parameters(start) else None

    def _item(self, node: ast.Subscript) -> Value | None:
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if "environ" in ast.unparse(node.value):
            return of_environment(key, None)
        return self._keyed(node.value, key) if isinstance(key, str) else None

    def _keyed(self, owner: ast.expr, key: str) -> Value | None:
        """Return what stands at a key of a dictionary: a configuration's, an option's, or one that is written out."""
        found = self.value(owner)
        if isinstance(found.literal, Config):
            return None if key in self.program.stored else found.literal[key]
        if isinstance(found.literal, dict) and key in found.literal:
            return Value(KNOWN, found.literal[key])
        written = self._written(owner, key)
        if written is not None:
            return written
        return Value(OPTION, option=self.program.options[key]) if key in self.program.options else None

    def _written(self, owner: ast.expr, key: str) -> Value | None:
        """Return an element of a dictionary of which not everything is a literal, where only one can be meant."""
        if isinstance(owner, ast.Name):
            around = self.function or self.source.tree
            given = assigned(owner.id, around) or assigned(owner.id, self.source.tree)
            return self._replace(depth=self.depth + 1)._written(given[0], key) if len(given) == 1 else None
        if isinstance(owner, ast.Dict):
            pairs = zip(owner.keys, owner.values, strict=True)
            found = [value for name, value in pairs if isinstance(name, ast.Constant) and name.value == key]
        elif isinstance(owner, ast.Call) and self.source.dotted(owner.func) == "dict":
            found = [each.value for each in owner.keywords if each.arg == key]
        else:
            return None
        return self._replace(depth=self.depth + 1).value(found[-1]) if found else None

    def _call(self, node: ast.Call) -> Value | None:
        called = self.source.dotted(node.func)
        first = node.args[0] if node.args else None
        if called in {"int", "bool"} and len(node.args) == 1 and first is not None:
            return self.value(first)
        if called in {"os.environ.get", "os.getenv"} and isinstance(first, ast.Constant):
            default = node.args[1] if len(node.args) > 1 else None
            return of_environment(first.value, self.value(default).literal if default is not None else None)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and isinstance(first, ast.Constant):
            return self._keyed(node.func.value, str(first.value))
        if called == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            return self._attribute(ast.Attribute(node.args[0], str(node.args[1].value), ast.Load()))
        return self._config(node, called) or self._settings(node, called) or self._returned(node, called)

    def _settings(self, node: ast.Call, called: str) -> Value | None:
        """Return the constants of a class that holds nothing else, where an object of it is made with its defaults."""
        name = called.rpartition(".")[2]
        classes = [each for each in self.program.classes if each.name == name]
        if node.args or node.keywords or len(classes) != 1:
            return None
        return Value(CONFIG, Config(self.program.constants(classes[0]))) if self.program.constants(classes[0]) else None

    def _config(self, node: ast.Call, called: str) -> Value | None:
        """Return the configuration that a call reads, merges or only wraps."""
        last = called.rpartition(".")[2]
        if called.endswith(("OmegaConf.from_cli", "OmegaConf.from_dotlist")):
            return Value(CONFIG, Config(overrides=True))
        if called in _READERS or called.endswith("OmegaConf.load"):
            texts = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
            named = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)} & {*self.program.options}
            texts |= {str(self.program.options[each].default) for each in named}
            files = [file for name, file in self.program.files.items() if name in texts]
            files = files or list(self.program.files.values())
            return Value(CONFIG, files[0]) if len(files) == 1 else None
        if last in _WRAPPERS:
            inner = [*node.args, *(each.value for each in node.keywords if each.arg is None)]
            deeper = self._replace(depth=self.depth + 1)
            parts = [part for each in inner if (part := deeper.config(each)) is not None]
            if parts and (last in {"merge", "unsafe_merge"} or len(parts) == 1):
                return Value(CONFIG, reduce(Config.merged, parts))
        return None

    def _returned(self, node: ast.Call, called: str) -> Value | None:
        """Return what the one return of the only function of a name gives back."""
        name = called.rpartition(".")[2]
        functions = [
            (each, source)
            for source in self.program.sources
            for each in source.functions
            if each.name == name and source.class_of(each) is None
        ]
        given = returned(functions[0][0]) if len(functions) == 1 else []
        if len(given) != 1:
            return None
        function, source = functions[0]
        inside = self._replace(source=source, function=function, called={**self.called, function: (node, self.source)})
        return inside._replace(depth=self.depth + 1).value(given[0])


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _unknown(node: ast.expr) -> Value:
    text = " ".join(ast.unparse(node).split())
    return Value(UNKNOWN, text=text if len(text) <= 60 else f"{text[:57]}...")
