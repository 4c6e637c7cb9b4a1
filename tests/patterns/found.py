"""Finds every regular expression of the package: in the attributes of its modules, and in calls of `re`."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from trainlaunch.diagnose.base.log_patterns import LogPattern, ways

PACKAGE = Path(__file__).parents[2] / "launcher" / "trainlaunch"
STAND_IN = "word"  # for a part that only a run knows
_USES = {each: each for each in ("match", "fullmatch", "search")} | dict.fromkeys(
    ("findall", "finditer", "sub", "subn", "split"), "scan"
)
_FUNCTIONS = rf"re\.(?:compile|{'|'.join(_USES)})"
# What a module has that makes a pattern, asks one, or gives a function the text of one.
_TELLING = re.compile(rf"\bre\.|\.(?:{'|'.join(_USES)})\(|\bLogPattern|\b(?:has|within|first|hits)\(|\bType\(")
_NAMED = re.compile(r"^([A-Za-z_]\w*).*= re\.compile\(", re.MULTILINE)


class Found(NamedTuple):
    """A regular expression, where it stands, and how texts are given to it: match, fullmatch, search, scan."""

    place: str
    pattern: re.Pattern[Any]
    uses: frozenset[str]


class Untold(NamedTuple):
    """A call of `re` whose pattern its module doesn't tell: a parameter, or an attribute of one."""

    place: str
    expression: str
    use: str


@cache
def _trees() -> dict[Path, ast.Module]:
    """Return the modules that have to do with patterns, those included that only hand one on by its name."""
    texts = {each: each.read_text() for each in sorted(PACKAGE.rglob("*.py")) if each.stem != "__main__"}
    names = {name for text in texts.values() for name in _NAMED.findall(text)}
    handed_on = re.compile(rf"\b(?:{'|'.join(names)})\b")
    return {each: ast.parse(text) for each, text in texts.items() if _TELLING.search(text) or handed_on.search(text)}


@cache
def _nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(_trees()[path]))


@cache
def _above(path: Path) -> Mapping[int, ast.AST]:
    return {id(child): node for node in _nodes(path) for child in ast.iter_child_nodes(node)}


@cache
def _calls() -> Mapping[str, list[tuple[Path, ast.Call]]]:
    calls: dict[str, list[tuple[Path, ast.Call]]] = defaultdict(list)
    for path in _trees():
        for node in _nodes(path):
            if isinstance(node, ast.Call):
                calls[_name(node.func) or ""].append((path, node))
    return calls


def _names(path: Path) -> Mapping[str, Any]:
    """Return what a module defines; of one that needs torch, as those for a job's container, only `re`."""
    try:
        return vars(importlib.import_module(_module(path)))
    except ModuleNotFoundError:
        return {"re": re}


def _module(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def modules(*below: str) -> Iterator[Mapping[str, Any]]:
    """Yield what the modules of these packages define."""
    yield from (_names(path) for path in _trees() if _module(path).startswith(below))


def arguments(function: str, which: int | str) -> Iterator[str]:
    """Yield the texts that calls of a function, or of a method of this name, are given as one of its arguments."""
    for path, node in _calls().get(function, ()):
        given = [each.value for each in node.keywords if each.arg == which]
        given += node.args[which : which + 1] if isinstance(which, int) else []
        for each in given:
            with suppress(NameError):  # a parameter, whose texts are those of the call above
                value = _value(each, _names(path))
                if isinstance(value, str):
                    yield value


@cache
def found() -> tuple[list[Found], list[Untold]]:
    """Return all patterns, and the calls whose patterns only a run knows."""
    patterns: list[Found] = []
    untold: list[Untold] = []
    for path, tree in _trees().items():
        names = _names(path)
        patterns += _in_tables(names, tree, path)
        for each in _in_calls(names, path):
            (patterns if isinstance(each, Found) else untold).append(each)
    return patterns, untold


@cache
def _uses() -> Mapping[tuple[str, Path | None], set[str]]:
    """Return how what has a name is used, in a module and, for None, in any. What is handed on is searched."""
    uses: dict[tuple[str, Path | None], set[str]] = defaultdict(set)
    for path in _trees():
        above = _above(path)
        for node in _nodes(path):
            name = _name(node)
            if name is None or isinstance(getattr(node, "ctx", None), ast.Store):
                continue
            holder = above[id(node)]
            asks = holder.attr if isinstance(holder, ast.Attribute) else "search"
            if asks == "match" and len(getattr(above[id(holder)], "args", ())) > 1:
                asks = "finditer"  # at one place after the other
            for where in (path, None):
                uses[name, where] |= {_USES[asks]} if asks in _USES else set()
    return uses


def _in_tables(names: Mapping[str, Any], tree: ast.Module, path: Path) -> Iterator[Found]:
    """Yield the compiled patterns that stand in a module's tables and classes, which no call by name asks."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        defined = [each.id for each in targets if isinstance(each, ast.Name)]
        for name in [*defined, *([node.name] if isinstance(node, ast.ClassDef) else [])]:
            value = names.get(name)
            for each in _held(value, set()) if not isinstance(value, re.Pattern) else ():
                yield Found(_place(path, node), each, frozenset({"search"}))


def _place(path: Path, node: ast.stmt | ast.expr) -> str:
    return f"{path.relative_to(PACKAGE.parent)}:{node.lineno}"


def _held(value: object, seen: set[int]) -> Iterator[re.Pattern[Any]]:
    if id(value) in seen or isinstance(value, str | bytes | int | ModuleType):
        return
    seen.add(id(value))
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, LogPattern):
        yield from (part for parts in ways(value.source) for part in parts)
    else:
        inside: list[object] = [*value.items()] if isinstance(value, dict) else []
        inside += value if isinstance(value, list | tuple | set | frozenset) else []
        ours = (value if isinstance(value, type) else type(value)).__module__.startswith("trainlaunch.")
        inside += vars(value).values() if ours and hasattr(value, "__dict__") else []
        for each in inside:
            yield from _held(each, seen)


def _in_calls(names: Mapping[str, Any], path: Path) -> Iterator[Found | Untold]:
    """Yield the patterns that are given to functions of `re`, wherever they stand in a module."""
    above = _above(path)
    for node in _nodes(path):
        if not isinstance(node, ast.Call) or not re.fullmatch(_FUNCTIONS, ast.unparse(node.func)):
            continue
        place, use = _place(path, node), node.func.attr
        flags = [*node.args[1:], *(each.value for each in node.keywords)]
        told = [each for each in flags if ast.unparse(each).startswith("re.")]
        try:
            pattern = re.compile(_value(node.args[0], names), _value(told[0], names) if told else 0)
        except (NameError, AttributeError, TypeError):
            yield Untold(place, ast.unparse(node.args[0]), _USES.get(use, "search"))
        else:
            yield Found(place, pattern, frozenset([_USES[use]] if use in _USES else _of_compiled(node, above, path)))


def _of_compiled(call: ast.AST, above: Mapping[int, ast.AST], path: Path) -> set[str]:
    """Return how a pattern is used that `re.compile` returns here: at once, by its name, or by its function's."""
    holder = above[id(call)]
    if isinstance(holder, ast.Attribute):
        return {_USES[holder.attr]}
    if isinstance(holder, ast.Return):
        names = [f"{getattr(_function(call, above), 'name', '')}()"]
    else:
        while isinstance(holder, ast.Tuple):
            holder = above[id(holder)]
        targets = holder.targets if isinstance(holder, ast.Assign) else [getattr(holder, "target", holder)]
        names = [each for target in targets for node in ast.walk(target) if (each := _name(node))]
    local = isinstance(_function(call, above), ast.FunctionDef)
    private = [(name, path if local or name.startswith("_") else None) for name in names]
    return {use for each in private for use in _uses()[each]} or {"search"}


def _function(node: ast.AST, above: Mapping[int, ast.AST]) -> ast.AST | None:
    while node is not None and not isinstance(node, ast.FunctionDef):
        node = above.get(id(node))
    return node


def _name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Call):
        return f"{_name(node.func)}()"
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return what an expression is in its module; a part of a formatted string that only a run knows is a word."""
    if not isinstance(node, ast.JoinedStr):
        return eval(ast.unparse(node), dict(names))  # noqa: S307 - our own code, of this checkout
    return "".join(each.value if isinstance(each, ast.Constant) else _part(each.value, names) for each in node.values)


def _part(node: ast.expr, names: Mapping[str, Any]) -> str:
    try:
        return str(_value(node, names))
    except NameError:
        return STAND_IN
