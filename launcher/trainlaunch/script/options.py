"""The options of a script's command line (argparse, click, absl), and those that take a planned value."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from trainlaunch.script.script_facts import AUTO, OPTION, VARIABLE, Loader, Option, ScriptFacts
from trainlaunch.script.source import PythonSource

_FLAGS = ("DEFINE_integer", "DEFINE_float", "DEFINE_string", "DEFINE_bool", "DEFINE_boolean", "DEFINE_enum")

_BY_NAME = {
    "num_workers": r"(?:(?:data_?)?loaders?_|data_|train_)?(?:num_|n_|nb_)?(?:data_?(?:loader)?_)?workers|nworkers|j",
    "batch_size": r"(?:per_device_)?(?:train_)?batch_?size|bs|b",
    "prefetch_factor": r"(?:data_?loader_)?prefetch(?:_factor)?",
}


def options_of(sources: tuple[PythonSource, ...]) -> tuple[Option, ...]:
    """Return every option, each name once, in the order of the text."""
    changed = {name for source in sources for name in _changed(source)}
    found: dict[str, Option] = {}
    for source in sources:
        for call, called in source.calls:
            option = _option(call, called, source, changed)
            if option is not None:
                found.setdefault(option.dest, option)
    return tuple(found.values())


def _option(call: ast.Call, called: str, source: PythonSource, changed: set[str]) -> Option | None:
    names = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    if not names:
        return None
    if called.rpartition(".")[2] == "add_argument" or called in {"click.option", "click.argument"}:
        return _declared(call, names, source, changed)
    if called.rpartition(".")[2] in _FLAGS and "absl" in f"{called} {' '.join(source.imports.values())}":
        default = _literal(call.args[1]) if len(call.args) > 1 else None
        return Option(f"--{names[0]}", names[0], default, False, source.place(call), names[0] in changed)
    return None


def _declared(call: ast.Call, names: list[str], source: PythonSource, changed: set[str]) -> Option:
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
        names=tuple(flags),
    )


def _changed(source: PythonSource) -> Iterator[str]:
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


def required_options(script: PythonSource, options: Iterable[Option]) -> tuple[Option, ...]:
    """Return what a script's own parser, of argparse, can't do without; nothing where something may change that."""
    called = [name.rpartition(".")[2] for _, name in script.calls]
    parses = [node for node, name in script.calls if name.rpartition(".")[2] in {"parse_args", "parse_known_args"}]
    alone = called.count("ArgumentParser") == 1 and len(parses) == 1 and not (parses[0].args or parses[0].keywords)
    if not alone or {"add_subparsers", "set_defaults", "parse_intermixed_args"} & {*called}:
        return ()
    own = {script.place(node): node for node, name in script.calls if name.rpartition(".")[2] == "add_argument"}
    return tuple(each for each in options if each.required and each.place in own and _is_plain(own[each.place]))


def _is_plain(call: ast.Call) -> bool:
    """Whether an argument that nothing else supplies takes at least one word: no count of words that may be none."""
    stated = {each.arg: each.value for each in call.keywords}
    count = _literal(stated["nargs"]) if "nargs" in stated else 1
    return None not in stated and (count == "+" or (isinstance(count, int) and count > 0)) and "action" not in stated


def token_options(facts: ScriptFacts, *, workers_certain: bool) -> dict[str, list[Option]]:
    """Return the options that take each token, by token.

    The batch size is that of the loader whose values the tokens have; it needs a default, which the job file then
    states. `workers_certain`: no plan gives 0 workers, so that a prefetch factor can't be refused by torch.
    """
    chosen = {
        "num_workers": _of_loaders(facts, "num_workers", facts.loaders),
        "batch_size": [each for each in _of_loaders(facts, "batch_size", _leading(facts)) if _whole(each.default)],
    }
    if workers_certain and any(takes_auto(each) for each in facts.loaders):
        prefetch = _of_loaders(facts, "prefetch_factor", _leading(facts))
        chosen["prefetch_factor"] = [each for each in prefetch if _whole(each.default)]
    return {token: options for token, options in chosen.items() if options}


def takes_auto(loader: Loader) -> bool:
    """Whether a loader's workers come from the plan."""
    return loader.settings["num_workers"].kind in {OPTION, AUTO, VARIABLE}


def _leading(facts: ScriptFacts) -> tuple[Loader, ...]:
    """Return the first loader that takes auto workers, else the first: the tokens have its values."""
    return tuple(sorted(facts.loaders, key=lambda each: not takes_auto(each))[:1])


def _of_loaders(facts: ScriptFacts, setting: str, loaders: Iterable[Loader]) -> list[Option]:
    """Return the options that loaders take a setting from, or without loaders those whose name says it."""
    used = [each.settings[setting].option for each in loaders if setting in each.settings]
    if not facts.loaders:
        used = [each for each in facts.options if re.fullmatch(_BY_NAME[setting], each.dest.lower())]
    flagged = [each for each in used if each is not None and each.flag and not each.changed]
    return list(dict.fromkeys(flagged))


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def token_variables(facts: ScriptFacts) -> dict[str, str]:
    """Return the variables of the environment that loaders take their workers from, with the token for each."""
    taken = (each.settings["num_workers"] for each in facts.loaders)
    return {each.text: "{num_workers}" for each in taken if each.kind == VARIABLE}


def arguments(tokens: dict[str, list[Option]]) -> list[str]:
    """Return the elements of argv that pass the tokens."""
    argv: list[str] = []
    for token, options in tokens.items():
        for option in options:
            argv += [f"{option.flag}={{{token}}}"] if option.joined else [option.flag, f"{{{token}}}"]
    return argv
