"""What a name is given: by assignments in a function, a class or a module, by a parameter's default, by a return."""

from __future__ import annotations

import ast
import functools
from collections import Counter, deque
from collections.abc import Iterator, Mapping

from trainlaunch.script.source import Function

_ONE_TARGET = (ast.AnnAssign, ast.NamedExpr)


def assigned(name: str, owner: ast.AST) -> list[ast.expr]:
    """Return what is assigned to a name in a function, a class's body or a module's, inner functions left out.

    A loop's variable, an unpacked one and `+=` count as an assignment of something that nobody knows.
    """
    values, stored = _assignments(owner)
    found = values.get(name, [])
    return [*found] if len(found) == stored[name] else [*found, ast.Name(name), ast.Name(name)]


@functools.lru_cache(maxsize=512)  # asked for each name: a script of a megabyte is walked once
def _assignments(owner: ast.AST) -> tuple[Mapping[str, list[ast.expr]], Counter[str]]:
    """Return what is assigned to each name, and how often each is stored to at all."""
    values: dict[str, list[ast.expr]] = {}
    stored: Counter[str] = Counter()
    waiting = deque(ast.iter_child_nodes(owner))
    while waiting:
        node = waiting.popleft()
        if isinstance(node, (Function, ast.ClassDef, ast.Lambda)):
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored[node.id] += 1
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, _ONE_TARGET) else []
        )
        value = getattr(node, "value", None)
        if isinstance(value, ast.expr):
            for name in {each.id for each in targets if isinstance(each, ast.Name)}:
                values.setdefault(name, []).append(value)
    return values, stored


def is_always(name: str, function: Function) -> bool:
    """Whether a statement of the function's own body, which no condition decides, gives a name its value."""
    return any(
        isinstance(target, ast.Name) and target.id == name
        for each in function.body
        for target in (each.targets if isinstance(each, ast.Assign) else [getattr(each, "target", None)])
    )


def is_fallback(name: str, function: Function) -> bool:
    """Whether a function gives a parameter another value only where it got none: `if x is None: x = 4`."""
    tests = {f"{name} is None", f"not {name}", f"{name} == None"}
    return any(isinstance(each, ast.If) and ast.unparse(each.test) in tests for each in function.body)


def parameters(function: Function) -> dict[str, ast.expr | None]:
    """Return each parameter with its default."""
    plain = [*function.args.posonlyargs, *function.args.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(function.args.defaults))
    found = dict(zip((each.arg for each in plain), [*defaults, *function.args.defaults], strict=True))
    keywords = zip((each.arg for each in function.args.kwonlyargs), function.args.kw_defaults, strict=True)
    return {**found, **dict(keywords)}


def is_init(node: ast.AST) -> bool:
    """Whether a node is the function that a class's objects start with."""
    return isinstance(node, Function) and node.name == "__init__"


def returned(function: Function) -> list[ast.expr]:
    """Return what a function returns, inner ones left out; nothing for one that yields."""
    found: list[ast.expr] = []
    for node in _own(function):
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return []
        if isinstance(node, ast.Return) and node.value is not None:
            found.append(node.value)
    return found


def _own(function: Function) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, (Function, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)
