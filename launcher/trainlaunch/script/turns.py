"""Whether a script's loaders run in turn: each loop over one ends before the next starts, shown by the text alone."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from trainlaunch.script.callees import Callee, Callees, Site
from trainlaunch.script.flow import COMPREHENSIONS, Unproved, loops_over
from trainlaunch.script.program import Program
from trainlaunch.script.script_facts import Turns
from trainlaunch.script.source import Function, PythonSource

_TO_THE_END = frozenset({"dict", "frozenset", "list", "max", "min", "set", "sorted", "sum", "tuple"})
_STARTS = frozenset({"absl.app.run", "fire.Fire", "torch.multiprocessing.spawn"})  # they run one function, once
_MAX_PLACES = 4
_TRIES = (ast.Try, getattr(ast, "TryStar", ast.Try))  # Python 3.11 brought except*
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def turns_of(program: Program, made: list[Site]) -> Turns:
    """Return whether the loaders `made` run in turn, and why not where the text doesn't show it."""
    callees = Callees(program)
    try:
        loops = loops_over(callees, made)
        _check(callees, loops)
    except Unproved as found:
        return Turns(False, f"{found.site.place} {found.words}")
    if not loops:
        return Turns(False, "no loop over one was found")
    places = list(dict.fromkeys(each.place for each in loops))
    more = f" and {len(places) - _MAX_PLACES} more" if len(places) > _MAX_PLACES else ""
    return Turns(True, ", ".join(places[:_MAX_PLACES]) + more)


def _check(callees: Callees, loops: tuple[Site, ...]) -> None:
    """Raise Unproved where one loop may run, or its workers may live, while another one starts."""
    starting = _starting(callees, loops)
    calls = [call for call, runs in callees.calls if any(each.node in starting for each in runs)]
    starts = {each.node: each for each in (*loops, *calls)}
    for callee in starting.values():
        _check_function(callees, callee)
    for each in starts.values():
        _check_start(each)
    for each in loops:
        _check_body(each, starts)
    for each in callees.nodes:
        _check_caught(each, starts)


def _starting(callees: Callees, loops: tuple[Site, ...]) -> dict[ast.AST, Callee]:
    """Return the functions that start a loop, themselves or by what they call."""
    found: dict[ast.AST, Callee] = {}
    waiting = list(loops)
    while waiting:
        site = waiting.pop()
        function = site.source.function(site.node)
        if function is not None and function not in found:
            found[function] = Callee(site.source, function)
            waiting += callees.calls_of(function)
    return found


def _check_function(callees: Callees, callee: Callee) -> None:
    source, function = callee
    site = Site(source, function)
    lazy = isinstance(function, ast.AsyncFunctionDef) or any(_yields(each) for each in _own(function.body))
    if lazy or (function.name.startswith("__") and function.name.endswith("__")):
        raise Unproved(site, f"loads data in {function.name}, which may be left halfway")
    handed = tuple(callees.handed(function))
    for each in handed:
        around = each.source.parents[each.node]
        if not (isinstance(around, ast.Call) and each.source.dotted(around.func) in _STARTS):
            raise Unproved(each, f"passes {function.name} on, which loads data whenever it is called")
    if not handed and not any(callees.calls_of(function)):
        raise Unproved(site, f"loads data in {function.name}, which others call")


def _check_start(site: Site) -> None:
    """A loop, or a call that leads to one, must run where it stands and to its end."""
    node = site.node
    around = [node, *site.source.around(node)]
    for inner, outer in itertools.pairwise(around):
        if isinstance(inner, Function):
            return
        called = site.source.dotted(outer.func) if isinstance(outer, ast.Call) else ""
        if isinstance(inner, ast.Lambda) or (isinstance(inner, ast.GeneratorExp) and called not in _TO_THE_END):
            raise Unproved(site, "loads data whenever something asks for it")


def _check_caught(site: Site, starts: dict[ast.AST, Site]) -> None:
    """After an exception that is caught a loop was left early, and while it is handled its workers still live."""
    node = site.node
    if isinstance(node, _TRIES):
        tried = _within(node.body, starts)
        handled = _within([*node.handlers, *node.finalbody], starts)
    elif isinstance(node, ast.With) and any(_suppresses(site.source, each) for each in node.items):
        tried, handled = _within(node.body, starts), []
    else:
        return
    for each in handled:
        raise Unproved(each, "loads data where an exception may still hold another loop")
    whole = [each for each in starts.values() if each.source.function(each.node) is None]
    inside = site.source.function(node) or any(isinstance(each, _LOOPS) for each in site.source.around(node))
    caught = tried if isinstance(node, ast.With) or node.handlers else []
    if caught and (inside or any(each not in caught for each in whole)):
        raise Unproved(site, "goes on after an exception, which leaves a loop before its end")


def _within(nodes: list[ast.stmt] | list[ast.AST], starts: dict[ast.AST, Site]) -> list[Site]:
    return [starts[node] for part in nodes for node in ast.walk(part) if node in starts]


def _suppresses(source: PythonSource, item: ast.withitem) -> bool:
    called = item.context_expr
    return isinstance(called, ast.Call) and source.dotted(called.func) == "contextlib.suppress"


def _check_body(loop: Site, starts: dict[ast.AST, Site]) -> None:
    for node in _own(_body(loop.node)):
        if node in starts:
            raise Unproved(starts[node], f"loads data inside the loop of {loop.place}")
    for node in _leaving(loop.node):
        raise Unproved(Site(loop.source, node), f"may leave the loop of {loop.place} before its end")


def _body(loop: ast.AST) -> list[ast.AST]:
    if isinstance(loop, ast.For):
        return list(loop.body)
    if not isinstance(loop, COMPREHENSIONS):
        return []
    first, *others = loop.generators
    shown = [loop.key, loop.value] if isinstance(loop, ast.DictComp) else [loop.elt]
    return [*shown, *first.ifs, *others]


def _own(nodes: list[ast.stmt] | list[ast.AST]) -> Iterator[ast.AST]:
    """Yield nodes and what is in them, except in functions that they only define."""
    waiting: list[ast.AST] = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (Function, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)


def _yields(node: ast.AST) -> bool:
    return isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await))


def _leaving(loop: ast.AST) -> Iterator[ast.AST]:
    """Yield what ends a loop early: its own break, a return, and what lets others run in between."""
    inner = [each for each in _own(_body(loop)) if isinstance(each, _LOOPS)]
    others = {node for each in inner for node in _own(each.body)}  # their own breaks; a loop's else is this loop's
    for node in _own(_body(loop)):
        if isinstance(node, ast.Return) or _yields(node) or (isinstance(node, ast.Break) and node not in others):
            yield node
