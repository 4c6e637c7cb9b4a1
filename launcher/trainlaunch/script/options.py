"""The options of a script's command line, and what of it takes a planned value."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from trainlaunch.script.script_facts import AUTO, OPTION, OVERRIDE, VARIABLE, Loader, Option, ScriptFacts, Value
from trainlaunch.script.signatures import options_of_signatures
from trainlaunch.script.source import PythonSource, literal

_FLAGS = ("DEFINE_integer", "DEFINE_float", "DEFINE_string", "DEFINE_bool", "DEFINE_boolean", "DEFINE_enum")

_BY_NAME = {
    "num_workers": r"(?:(?:data_?)?loaders?_|data_|train_)?(?:num_|n_|nb_)?(?:data_?(?:loader)?_)?workers|nworkers|j",
    "batch_size": r"(?:per_device_)?(?:train_)?batch_?size|bs|b",
    "prefetch_factor": r"(?:data_?loader_)?prefetch(?:_factor)?",
}


def options_of(sources: tuple[PythonSource, ...]) -> tuple[Option, ...]:
    """Return every option, each name once, in the order of the text."""
    changed = {name for source in sources for name in _changed(source)}
    marked = {name for source in sources for name in _marked(source)}
    found: dict[str, Option] = {}
    for source in sources:
        for call, called in source.calls:
            option = _option(call, called, source, changed)
            if option is not None:
                found.setdefault(option.dest, option._replace(required=option.required or option.dest in marked))
    for option in options_of_signatures(sources):
        found.setdefault(option.dest, option._replace(changed=option.dest in changed))
    return tuple(found.values())


def _option(call: ast.Call, called: str, source: PythonSource, changed: set[str]) -> Option | None:
    names = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    if not names:
        return None
    if called.rpartition(".")[2] == "add_argument" or called in {"click.option", "click.argument"}:
        return _declared(call, names, source, changed)
    if called.rpartition(".")[2] in _FLAGS and "absl" in f"{called} {' '.join(source.imports.values())}":
        default = literal(call.args[1]) if len(call.args) > 1 else None
        required = any(each.arg == "required" and literal(each.value) is True for each in call.keywords)
        spelled = (f"--{names[0]}", f"-{names[0]}")
        return Option(spelled[0], names[0], default, required, source.place(call), names[0] in changed, names=spelled)
    return None


def _marked(source: PythonSource) -> Iterator[str]:
    """Yield the flags of absl that are required by a call of their own."""
    for call, called in source.calls:
        if called.endswith((".mark_flag_as_required", ".mark_flags_as_required")):
            yield from (str(each.value) for each in ast.walk(call) if isinstance(each, ast.Constant))


def _declared(call: ast.Call, names: list[str], source: PythonSource, changed: set[str]) -> Option:
    stated = {each.arg: each.value for each in call.keywords if each.arg}
    flags = [each for each in names if each.startswith("-")]
    long = [each for each in flags if each.startswith("--")]
    flag = (long or flags or [""])[0]
    bare = [each for each in names if not each.startswith("-")]
    dest = literal(stated["dest"]) if "dest" in stated else (bare or [flag.lstrip("-")])[0]
    spelled = str(dest).replace("-", "_")
    positional = not flags and not source.dotted(call.func).startswith("click.option")
    count = stated.get("nargs")
    optional = count is not None and (
        literal(count) in {"?", "*", "..."} or ast.unparse(count).endswith(("REMAINDER", "ZERO_OR_MORE", "OPTIONAL"))
    )
    of_click = source.dotted(call.func).startswith("click.")
    optional = optional or (of_click and ("default" in stated or ast.unparse(stated.get("required", call)) == "False"))
    return Option(
        flag=flag,
        dest=spelled,
        default=literal(stated["default"]) if "default" in stated else None,
        required=(positional and not optional) or ("required" in stated and literal(stated["required"]) is True),
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


def token_options(facts: ScriptFacts, *, workers_certain: bool) -> dict[str, list[Option]]:
    """Return the options that take each token, by token.

    The batch size is that of the loader whose values the tokens have; it needs a default, which the job file then
    sets. `workers_certain`: no plan gives 0 workers, so that a prefetch factor can't be refused by torch.
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
    return loader.settings["num_workers"].kind in {OPTION, AUTO, VARIABLE, OVERRIDE}


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
    """Return the variables of the environment that loaders take a planned value from, with the token for each."""
    return {each.text: f"{{{token}}}" for token, each in _taken(facts) if each.kind == VARIABLE}


def token_overrides(facts: ScriptFacts) -> list[str]:
    """Return KEY=TOKEN for each key of a configuration that loaders take a planned value from."""
    return list(dict.fromkeys(f"{each.text}={{{token}}}" for token, each in _taken(facts) if each.kind == OVERRIDE))


def _taken(facts: ScriptFacts) -> Iterator[tuple[str, Value]]:
    """Yield each token with a value that a loader has from outside the script; of batch sizes the leading one's."""
    for loader in facts.loaders:
        yield "num_workers", loader.settings["num_workers"]
    for loader in _leading(facts):
        batch = loader.settings.get("batch_size")
        if batch is not None and _whole(batch.number):
            yield "batch_size", batch


def arguments(tokens: Mapping[str, list[Option]]) -> list[str]:
    """Return the elements of argv that pass the tokens."""
    argv: list[str] = []
    for token, options in tokens.items():
        for option in options:
            argv += [f"{option.flag}={{{token}}}"] if option.joined else [option.flag, f"{{{token}}}"]
    return argv
