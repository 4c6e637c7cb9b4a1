"""What the call of a DataLoader states: its arguments, and the dictionaries that are spread into it."""

from __future__ import annotations

import ast
import re

from trainlaunch.script.assignments import is_always, parameters
from trainlaunch.script.resolve import Scope
from trainlaunch.script.script_facts import GUARDED, KNOWN, UNKNOWN, Value
from trainlaunch.script.source import Function, PythonSource

_POSITIONS = (
    "dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory",
    "drop_last", "timeout", "worker_init_fn", "multiprocessing_context",
)  # fmt: skip
_DEEPEST = 4  # of a ** that one function passes to the next


def stated_settings(scope: Scope, call: ast.Call) -> tuple[dict[str, Value], str]:
    """Return the call's arguments by name, and the text of a ** that can't be read."""
    found: dict[str, Value] = {}
    opaque = ""
    for name, argument in zip(_POSITIONS, call.args, strict=False):
        if isinstance(argument, ast.Starred):
            break
        found[name] = _setting(scope, name, argument)
    for keyword in call.keywords:
        if keyword.arg is not None:
            found[keyword.arg] = _setting(scope, keyword.arg, keyword.value)
            continue
        spread = spread_settings(scope, keyword.value)
        if spread is None:
            opaque = ast.unparse(keyword.value)
        else:
            found |= spread
    return found, opaque


def _setting(scope: Scope, name: str, node: ast.expr) -> Value:
    if name == "collate_fn":
        return collate(scope.source, node)
    if name == "batch_size":
        return scope._replace(by_default=True).value(node)
    if name in {"persistent_workers", "prefetch_factor"}:
        guarded = _with_workers(node)
        return scope.value(guarded)._replace(text=GUARDED) if guarded is not node else scope.value(node)
    return scope.value(node)


def _with_workers(node: ast.expr) -> ast.expr:
    """Return what an expression is once there are workers: `4 if num_workers else None` is 4, `workers > 0` is True."""
    if isinstance(node, ast.IfExp) and "worker" in ast.unparse(node.test).lower():
        return node.body
    asks = node.args[0] if isinstance(node, ast.Call) and ast.unparse(node.func) == "bool" and node.args else node
    above = isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Gt, ast.NotEq))
    above = above and ast.unparse(node.comparators[0]) == "0" if isinstance(node, ast.Compare) else above
    if (above or asks is not node) and "worker" in ast.unparse(asks).lower():
        return ast.Constant(True)
    return node


def spread_settings(scope: Scope, node: ast.expr) -> dict[str, Value] | None:
    """Return the settings of a dictionary that is spread into a call: its literal, and what .update() lays on it."""
    if isinstance(node, ast.Dict):
        keys = [each.value if isinstance(each, ast.Constant) else None for each in node.keys]
        return {str(key): _setting(scope, str(key), value) for key, value in zip(keys, node.values, strict=True)}
    if isinstance(node, ast.Call) and scope.source.dotted(node.func) == "dict" and not node.args:
        return {each.arg: _setting(scope, each.arg, each.value) for each in node.keywords if each.arg}
    part = scope.config(node)
    if part is not None:
        return {key: value for key in part.tree if (value := part[key]) is not None}
    return _named(scope, node.id) if isinstance(node, ast.Name) else None


def _named(scope: Scope, name: str) -> dict[str, Value] | None:
    """Return the settings of a dictionary by its name: of the ** that a call filled, a parameter's, or a variable's."""
    function = scope.function
    if function is not None and function.args.kwarg is not None and function.args.kwarg.arg == name:
        return _passed(scope, function)
    if function is not None and name in parameters(function) and not is_always(name, function):
        given = scope.value(ast.Name(name)).literal
        return {str(key): Value(KNOWN, each) for key, each in given.items()} if isinstance(given, dict) else None
    owner: ast.AST = function or scope.source.tree
    found: dict[str, Value] | None = None
    for each in ast.walk(owner):
        if isinstance(each, ast.Assign) and any(ast.unparse(target) == name for target in each.targets):
            found = spread_settings(scope, each.value)
            break
    return None if found is None else found | _laid(scope, owner, name)


def _passed(scope: Scope, function: Function) -> dict[str, Value] | None:
    """Return the settings that the call of a function passes on by its **; None where no one call is known."""
    if function not in scope.called:
        return None
    call, where = scope.called[function]
    inside = Scope(scope.program, where, where.function(call), depth=scope.depth + 1)
    own = [each for each in call.keywords if each.arg not in parameters(function)]
    found: dict[str, Value] = {}
    for each in own if scope.depth < _DEEPEST else ():
        part = (
            spread_settings(inside, each.value)
            if each.arg is None
            else {each.arg: _setting(inside, each.arg, each.value)}
        )
        if part is None:
            return None
        found |= part
    return found if scope.depth < _DEEPEST else None


def _laid(scope: Scope, owner: ast.AST, name: str) -> dict[str, Value]:
    """Return what a dictionary gets after it was made: by .update(), and key by key."""
    found: dict[str, Value] = {}
    for each in ast.walk(owner):
        if isinstance(each, ast.Call) and ast.unparse(each.func) == f"{name}.update":
            parts = [spread_settings(scope, argument) for argument in each.args]
            parts.append({key.arg: _setting(scope, key.arg, key.value) for key in each.keywords if key.arg})
            found |= {key: value for part in parts if part for key, value in part.items()}
        elif isinstance(each, ast.Assign) and isinstance(target := each.targets[0], ast.Subscript):
            key = target.slice.value if isinstance(target.slice, ast.Constant) else None
            if isinstance(key, str) and ast.unparse(target.value) == name:
                always = scope.source.parents.get(each) is owner
                found[key] = _setting(scope, key, each.value) if always else Value(UNKNOWN, text=ast.unparse(each))
    return found


def collate(source: PythonSource, node: ast.expr) -> Value:
    """Return `list` for a collate function that only regroups the samples; of any other only its text is known."""
    if isinstance(node, ast.Constant) and node.value is None:
        return Value(KNOWN, "stack")
    body: ast.expr | None = None
    if isinstance(node, ast.Lambda):
        body = node.body
    elif isinstance(node, ast.Name):
        body = _only_return(source, node.id)
    text = "".join(ast.unparse(body).split()) if body is not None else ""
    if re.fullmatch(r"(\w+)|(?:tuple|list)\((?:zip\(\*)?\w+\)?\)", text):
        return Value(KNOWN, "list")
    return Value(UNKNOWN, text=" ".join(ast.unparse(node).split())[:60])


def _only_return(source: PythonSource, name: str) -> ast.expr | None:
    for each in source.nodes:
        if isinstance(each, Function) and each.name == name:
            body = [part for part in each.body if not isinstance(part, ast.Expr)]
            if len(body) == 1 and isinstance(body[0], ast.Return):
                return body[0].value
    return None
