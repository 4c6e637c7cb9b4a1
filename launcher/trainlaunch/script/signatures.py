"""Options that a command line gets from a signature: typer's and fire's functions, dataclasses of parsers like tyro."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from trainlaunch.script.assignments import parameters
from trainlaunch.script.script_facts import Option
from trainlaunch.script.source import Function, PythonSource, literal

_DATACLASS_PARSERS = {
    "HfArgumentParser": "_", "TrlParser": "_", "tyro.cli": "-", "simple_parsing.parse": "_", "pyrallis.parse": "_",
    "draccus.parse": "_",
}  # fmt: skip
_NO_DEFAULT = object()


class Signature(NamedTuple):
    """A function whose parameters are options, and the library that makes them so.

    `name` is the word of the command line that chooses it where there are several; `alone`: it is never one of them.
    """

    source: PythonSource
    function: Function
    library: str
    name: str = ""
    alone: bool = True


def signatures_of(sources: tuple[PythonSource, ...]) -> tuple[Signature, ...]:
    """Return the functions that typer, fire or click start with the command line's options."""
    return tuple(_signatures(sources))


def _signatures(sources: tuple[PythonSource, ...]) -> Iterator[Signature]:
    by_name = {
        each.name: Signature(source, each, "")
        for source in sources
        for each in source.functions
        if source.class_of(each) is None
    }
    for source in sources:
        for call, called in source.calls:
            library = {"fire.Fire": "fire", "typer.run": "typer"}.get(called)
            first = call.args[0] if call.args else None
            if library and isinstance(first, ast.Name) and first.id in by_name:
                yield by_name[first.id]._replace(library=library)
        made = {called for called in source.imports.values() if called.partition(".")[0] in {"click", "typer"}}
        for function in source.functions if made else ():
            for each in function.decorator_list:
                word = source.dotted(_called(each))
                if word.endswith(".command"):
                    alone = word.startswith("click.")
                    library = "click" if alone else _owner(source)
                    yield Signature(source, function, library, _command_name(function, each), alone)


def _command_name(function: Function, decorator: ast.expr) -> str:
    """Return the word that a decorator makes of a function, as click and typer spell it."""
    call = decorator if isinstance(decorator, ast.Call) else None
    stated = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "name")] if call else []
    names = [each.value for each in stated if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return names[0] if names else function.name.replace("_", "-")


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _owner(source: PythonSource) -> str:
    return "typer" if any(called == "typer.Typer" for _, called in source.calls) else "click"


def options_of_signatures(sources: tuple[PythonSource, ...]) -> Iterator[Option]:
    """Yield the options of typer, fire and of dataclasses that a parser fills; click declares its own."""
    for source, function, library, *_ in signatures_of(sources):
        if library in {"typer", "fire"}:
            positions = parameters(function)
            annotated = {each.arg: each.annotation for each in (*function.args.args, *function.args.kwonlyargs)}
            for name, default in positions.items():
                yield _parameter(source, function, library, name, default, annotated.get(name))
    for source in sources:
        for call, called in source.calls:
            joint = next((each for end, each in _DATACLASS_PARSERS.items() if called.endswith(end)), None)
            if joint is not None:
                names = {each.id for part in call.args[:1] for each in ast.walk(part) if isinstance(each, ast.Name)}
                yield from _fields(sources, names, joint)


def _parameter(
    source: PythonSource,
    function: Function,
    library: str,
    name: str,
    default: ast.expr | None,
    annotation: ast.expr | None,
) -> Option:
    told = _declaration(source, annotation) or _declaration(source, default)
    value: object = _NO_DEFAULT if default is None else literal(default)
    names: list[str] = []
    if told is not None:
        words = [each.value for each in told.args if isinstance(each, ast.Constant)]
        names = [each for each in words if isinstance(each, str) and each.startswith("-")]
        if default is told:
            stated = next((each.value for each in told.keywords if each.arg == "default"), None)
            stated = stated or (told.args[0] if told.args else None)
            value = _NO_DEFAULT if stated is None or literal(stated) is ... else literal(stated)
    kind = source.dotted(told.func).rpartition(".")[2] if told is not None else ""
    positional = library == "typer" and (kind == "Argument" or (told is None and value is _NO_DEFAULT))
    names = [] if positional else names or [f"--{name.replace('_', '-') if library == 'typer' else name}"]
    long = [each for each in names if each.startswith("--")]
    return Option(
        flag=(long or names or [""])[0].partition("/")[0],
        dest=name,
        default=None if value is _NO_DEFAULT else value,
        required=value is _NO_DEFAULT,
        place=source.place(function),
        joined=bool(long),
        names=tuple(names),
        entry=source.place(function),
        by_position=library == "fire",
    )


def _declaration(source: PythonSource, node: ast.expr | None) -> ast.Call | None:
    """Return the typer.Option(…) or typer.Argument(…) of a default or an annotation."""
    for each in ast.walk(node) if node is not None else ():
        if isinstance(each, ast.Call) and source.dotted(each.func) in {"typer.Option", "typer.Argument"}:
            return each
    return None


def _fields(sources: tuple[PythonSource, ...], names: set[str], joint: str) -> Iterator[Option]:
    """Yield the fields of dataclasses by their names, with those that they inherit from classes of the program."""
    for source in sources:
        for node in source.nodes:
            if isinstance(node, ast.ClassDef) and node.name in names:
                yield from _fields(sources, {each.id for each in node.bases if isinstance(each, ast.Name)}, joint)
                for each in node.body:
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                        yield _field(source, each, each.target.id, joint)


def _field(source: PythonSource, node: ast.AnnAssign, name: str, joint: str) -> Option:
    value, default = node.value, None
    required = value is None
    if isinstance(value, ast.Call) and source.dotted(value.func).endswith("field"):
        stated = {each.arg: each.value for each in value.keywords}
        default = literal(stated["default"]) if "default" in stated else None
        required = not {"default", "default_factory"} & stated.keys()
    elif value is not None:
        default = literal(value)
    spelled = f"--{name.replace('_', joint)}"
    names = tuple(dict.fromkeys([spelled, f"--{name}", f"--{name.replace('_', '-')}"]))
    return Option(spelled, name, default, required, source.place(node), names=names)
