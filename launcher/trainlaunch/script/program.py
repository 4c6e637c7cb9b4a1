"""A script with the modules that it imports: what calls what, what can run at all, its options and configuration."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cached_property

from trainlaunch.script.config_files import Config, Leaf, Tree
from trainlaunch.script.script_facts import Option
from trainlaunch.script.source import Function, PythonSource


class Program:
    """The script with the modules that it imports from its folder, and its options by name.

    `files` are the configuration files that it names, `hydra` is what its entry function gets from Hydra.
    """

    def __init__(
        self,
        sources: tuple[PythonSource, ...],
        options: Mapping[str, Option],
        files: Mapping[str, Config] = {},
        hydra: Config | None = None,
    ) -> None:
        self.sources = sources
        self.options = options
        self.files = files
        self.hydra = hydra

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

    @cached_property
    def classes(self) -> tuple[ast.ClassDef, ...]:
        """Every class of the program."""
        return tuple(node for source in self.sources for node in source.nodes if isinstance(node, ast.ClassDef))

    @cached_property
    def stored(self) -> frozenset[str]:
        """The attributes and keys that something assigns, of whatever object but self."""
        found: set[object] = set()
        for node in (each for source in self.sources for each in source.nodes):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found |= {node.attr} if ast.unparse(node.value) != "self" else set()
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                found |= {node.slice.value} if isinstance(node.slice, ast.Constant) else set()
        return frozenset(map(str, found))

    @cached_property
    def holders(self) -> Mapping[str, Option]:
        """The options that a module holds under names of its own: `WORKERS = flags.DEFINE_integer("workers", 4)`."""
        by_place = {each.place: each for each in self.options.values()}
        found: dict[str, Option] = {}
        for source in self.sources:
            for node in source.tree.body:
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                    option = by_place.get(source.place(node.value))
                    names = [each.id for each in node.targets if isinstance(each, ast.Name)]
                    found |= dict.fromkeys(names, option) if option is not None else {}
        return found

    def constants(self, owner: ast.ClassDef) -> Tree:
        """Return the fields of a class that are literals; nothing for one that makes them otherwise."""
        if any(isinstance(each, Function) and each.name in {"__init__", "__post_init__"} for each in owner.body):
            return {}
        source = next(each for each in self.sources if owner in each.parents)
        found: dict[str, Tree | Leaf] = {}
        for each in owner.body:
            target = each.targets[0] if isinstance(each, ast.Assign) else getattr(each, "target", None)
            value = getattr(each, "value", None)
            if isinstance(target, ast.Name) and isinstance(value, ast.Constant):
                found[target.id] = Leaf(value.value, source.place(each))
        return found

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
