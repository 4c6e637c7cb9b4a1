"""The options of a script's command line: argparse, click and absl."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainlaunch.init.facts import Option
from trainlaunch.init.source import Source

_FLAGS = ("DEFINE_integer", "DEFINE_float", "DEFINE_string", "DEFINE_bool", "DEFINE_boolean", "DEFINE_enum")


def options_of(sources: tuple[Source, ...]) -> tuple[Option, ...]:
    """Return every option, each name once, in the order of the text."""
    changed = {name for source in sources for name in _changed(source)}
    found: dict[str, Option] = {}
    for source in sources:
        for call, called in source.calls:
            option = _option(call, called, source, changed)
            if option is not None:
                found.setdefault(option.dest, option)
    return tuple(found.values())


def _option(call: ast.Call, called: str, source: Source, changed: set[str]) -> Option | None:
    names = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    if not names:
        return None
    if called.rpartition(".")[2] == "add_argument" or called in {"click.option", "click.argument"}:
        return _declared(call, names, source, changed)
    if called.rpartition(".")[2] in _FLAGS and "absl" in f"{called} {' '.join(source.imports.values())}":
        default = _literal(call.args[1]) if len(call.args) > 1 else None
        return Option(f"--{names[0]}", names[0], default, False, source.place(call), names[0] in changed)
    return None


def _declared(call: ast.Call, names: list[str], source: Source, changed: set[str]) -> Option:
    stated = {each.arg: each.value for each in call.keywords if each.arg}
    flags = [each for each in names if each.startswith("-")]
    long = [each for each in flags if each.startswith("--")]
    flag = (long or flags or [""])[0]
    bare = [each for each in names if not each.startswith("-")]
    dest = _literal(stated["dest"]) if "dest" in stated else (bare or [flag.lstrip("-")])[0]
    spelled = str(dest).replace("-", "_")
    positional = not flags and not source.dotted(call.func).startswith("click.option")
    optional = "nargs" in stated and _literal(stated["nargs"]) in {"?", "*"}
    return Option(
        flag=flag,
        dest=spelled,
        default=_literal(stated["default"]) if "default" in stated else None,
        required=(positional and not optional) or ("required" in stated and _literal(stated["required"]) is True),
        place=source.place(call),
        changed=spelled in changed,
        joined=flag.startswith("--"),
    )


def _changed(source: Source) -> Iterator[str]:
    """Yield the attributes that are assigned anywhere, as in `args.batch_size = args.batch_size // ranks`."""
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            owner = node.value
            if not (isinstance(owner, ast.Name) and owner.id in {"self", "cls"}):
                yield node.attr


def _literal(node: ast.expr) -> object:
    try:
        value: object = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value
