"""Which functions of a program a call may run, by their names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import NamedTuple

from trainlaunch.script.program import Program
from trainlaunch.script.source import Function, PythonSource


class Site(NamedTuple):
    """A node and the file that it stands in."""

    source: PythonSource
    node: ast.AST

    @property
    def place(self) -> str:
        """File and line."""
        return self.source.place(self.node)


class Callee(NamedTuple):
    """A function and the file that it stands in."""

    source: PythonSource
    node: Function


class Callees:
    """The functions of a program; several of one name all count as what a call of that name runs."""

    def __init__(self, program: Program) -> None:
        self.program = program

    @cached_property
    def nodes(self) -> tuple[Site, ...]:
        """Every node that something may run."""
        dead = {each for function in self.program.dead for each in ast.walk(function)}
        return tuple(Site(source, node) for source in self.program.sources for node in source.nodes if node not in dead)

    @cached_property
    def read(self) -> dict[str, list[Site]]:
        """Where each variable and each attribute is read, by its name."""
        found: dict[str, list[Site]] = {}
        for site in self.nodes:
            if isinstance(site.node, (ast.Name, ast.Attribute)) and isinstance(site.node.ctx, ast.Load):
                found.setdefault(site.node.id if isinstance(site.node, ast.Name) else site.node.attr, []).append(site)
        return found

    @cached_property
    def _plain(self) -> dict[str, list[Callee]]:
        """Functions that are called by their name alone, or after a module's."""
        return self._by_name(of_classes=False)

    @cached_property
    def _methods(self) -> dict[str, list[Callee]]:
        return self._by_name(of_classes=True)

    @cached_property
    def _starts(self) -> dict[str, list[Callee]]:
        """What making an object of a class runs, by the class's name."""
        found: dict[str, list[Callee]] = {}
        for each in self._methods.get("__init__", ()):
            owner = each.source.parents[each.node]
            if isinstance(owner, ast.ClassDef):
                found.setdefault(owner.name, []).append(each)
        return found

    def _by_name(self, *, of_classes: bool) -> dict[str, list[Callee]]:
        found: dict[str, list[Callee]] = {}
        for source, node in self.nodes:
            if isinstance(node, Function) and isinstance(source.parents.get(node), ast.ClassDef) == of_classes:
                found.setdefault(node.name, []).append(Callee(source, node))
        return found

    def named_by(self, source: PythonSource, node: ast.AST) -> tuple[Callee, ...]:
        """Return the functions that an expression may name: a call of it would run them."""
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return ()
        if isinstance(node, ast.Name) and owner_of(source, node, node.id) is not source.tree:
            return ()  # a function's own variable; where it was given to that, the function's name stands
        name = source.dotted(node).rpartition(".")[2]
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        found = list(self._methods.get(name, ())) if isinstance(node, ast.Attribute) else []
        if isinstance(node, ast.Name) or (isinstance(root, ast.Name) and root.id in source.imports):
            found += [*self._plain.get(name, ()), *self._starts.get(name, ())]
        return tuple(found)

    @cached_property
    def calls(self) -> tuple[tuple[Site, tuple[Callee, ...]], ...]:
        """Every call that runs functions of the program, with them."""
        found = (
            (Site(source, node), self.named_by(source, node.func))
            for source, node in self.nodes
            if isinstance(node, ast.Call)
        )
        return tuple((site, runs) for site, runs in found if runs)

    @cached_property
    def _handed(self) -> tuple[tuple[Site, tuple[Callee, ...]], ...]:
        """Every place that names functions of the program and doesn't call them, with them."""
        found = ((each, self.named_by(*each)) for sites in self.read.values() for each in sites if not _called(*each))
        return tuple((site, runs) for site, runs in found if runs)

    def calls_of(self, function: Function) -> Iterator[Site]:
        """Yield the calls that may run a function."""
        yield from (call for call, runs in self.calls if any(each.node is function for each in runs))

    def handed(self, function: Function) -> Iterator[Site]:
        """Yield where a function is named and not called: whoever gets it may call it at any time."""
        yield from (site for site, runs in self._handed if any(each.node is function for each in runs))


def _called(source: PythonSource, node: ast.AST) -> bool:
    parent = source.parents.get(node)
    return isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Call) and parent.func is node)


def owner_of(source: PythonSource, node: ast.AST, name: str) -> ast.AST:
    """Return the function whose variable a name is, else the module."""
    inside = (each for each in source.around(node) if isinstance(each, Function))
    return next((each for each in inside if name in _variables(each)), source.tree)


@lru_cache(maxsize=4096)
def _variables(function: Function) -> frozenset[str]:
    found = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        if not isinstance(node, (Function, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)
    return frozenset(found)
