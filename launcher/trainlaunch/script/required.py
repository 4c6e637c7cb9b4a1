"""What a script's command line can't do without: its required options, and the word that chooses what it does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import NamedTuple

from trainlaunch.script.assignments import parameters
from trainlaunch.script.program import Program
from trainlaunch.script.rank_start import decides
from trainlaunch.script.script_facts import Option
from trainlaunch.script.signatures import Signature, signatures_of
from trainlaunch.script.source import PythonSource, literal

_PARSERS = ("ArgumentParser", "HfArgumentParser", "TrlParser")
_MAY_CHANGE = frozenset({"add_subparsers", "set_defaults", "parse_intermixed_args"})
_CHANGE_ARGV = frozenset({f"sys.argv.{each}" for each in ("append", "clear", "extend", "insert", "pop", "remove")})
_BY_COMMAND_LINE = frozenset({"click", "typer"})
_MORE_COMMANDS = frozenset({"add_command", "add_typer", "CommandCollection"})
_NEEDS_NONE = frozenset({"invoke_without_command", "cls"})
_OTHER_SOURCES = frozenset({"auto_envvar_prefix", "callback", "envvar", "prompt", "is_eager", "nargs", "default_map"})
_TRAINS = frozenset({"train", "fit", "finetune", "pretrain", "training"})
_NO_TRAINING = frozenset({
    "analyze", "benchmark", "clean", "convert", "demo", "download", "eval", "evaluate", "evaluation", "export",
    "generate", "infer", "inference", "info", "list", "plot", "predict", "prediction", "prepare", "preprocess",
    "sample", "serve", "show", "summary", "test", "validate", "version", "visualize",
})  # fmt: skip


class Subcommand(NamedTuple):
    """The first word of a command line that has several: `name` is the one that trains, `` where nobody can say.

    `missing` says what must stand there, as something that the command lacks; None where a command may do without.
    """

    name: str = ""
    missing: Option | None = None


def required_options(program: Program, options: Iterable[Option]) -> tuple[Option, ...]:
    """Return what the one parser of a program can't do without; nothing where something may change that."""
    entries = signatures_of(program.sources)
    sources = program.sources
    if "required" in program.stored or any(map(_changes_argv, sources)):
        return ()
    if any(name == "absl.app.run" for _, name in sources[0].calls):
        return () if entries or _parsers(program, sources) else tuple(each for each in options if each.required)
    if _parsers(program, sources[:1]) and not entries:
        sources = sources[:1]  # a parser of a module that the script imports is not the script's
    parsers = _parsers(program, sources)
    called = {name.rpartition(".")[2] for source in sources for _, name in source.calls}
    if len(parsers) + len(entries) != 1 or (parsers and _MAY_CHANGE & called):
        return ()
    if entries:
        return () if _grouped(program.sources) else tuple(_of_entry(program, entries[0], options))
    declared = {
        source.place(call): (call, source)
        for source in sources
        for call, name in source.calls
        if name.endswith(".add_argument")
    }
    if parsers == ["ArgumentParser"]:
        parses = [(call, source) for source in sources for call, _ in source.calls if _parses(call)]
        if len(parses) != 1 or not _of_command_line(program, *parses[0]):
            return ()
        plain = {
            at for at, (call, source) in declared.items() if _is_plain(call) and _is_certain(program, source, call)
        }
        return tuple(each for each in options if each.required and each.place in plain)
    from_line = {"parse_args_into_dataclasses", "parse_args_and_config"} & called
    return tuple(each for each in options if each.required and from_line and each.place not in declared)


def _parsers(program: Program, sources: Iterable[PythonSource]) -> list[str]:
    """Return the kind of each parser that something may make; others than argparse's may read a file as well."""
    found = ((source, call, name.removeprefix("argparse.")) for source in sources for call, name in source.calls)
    kinds = ((source, call, name, name.rpartition(".")[2]) for source, call, name in found)
    made = [(name, kind) for source, call, name, kind in kinds if kind in _PARSERS and program.runs(source, call)]
    return [name if kind == "ArgumentParser" else kind for name, kind in made]


def _changes_argv(source: PythonSource) -> bool:
    """Whether a program puts words into its own command line."""
    if any(name in _CHANGE_ARGV for _, name in source.calls):
        return True
    stored = (
        each.value if isinstance(each, ast.Subscript) else each
        for each in source.nodes
        if isinstance(each, (ast.Attribute, ast.Subscript)) and isinstance(each.ctx, ast.Store)
    )
    return any(isinstance(each, ast.Attribute) and source.dotted(each) == "sys.argv" for each in stored)


def _is_certain(program: Program, source: PythonSource, call: ast.Call) -> bool:
    """Whether no condition, handler of an exit or earlier return decides if a call is made."""
    function = source.function(call)
    sites = [(call, source), *(program.calls.get(function.name, ()) if function else ())]
    if not program.runs(source, call) or any(_decides(each) for at, where in sites for each in where.around(at)):
        return False
    returns = (each for each in ast.walk(function) if isinstance(each, ast.Return)) if function else ()
    return all(each.lineno >= call.lineno for each in returns)


def _decides(node: ast.AST) -> bool:
    """Whether a node decides if what is below it is done, or goes on where a parser ends the script."""
    if not isinstance(node, ast.Try):
        return decides(node)
    caught = (ast.unparse(each.type) if each.type else "SystemExit" for each in node.handlers)
    return any(word in each for each in caught for word in ("SystemExit", "BaseException"))


def _parses(call: ast.Call) -> bool:
    """Whether a method of a parser is called, and no function of the script that has its name."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in {"parse_args", "parse_known_args"}


def _of_entry(program: Program, entry: Signature, options: Iterable[Option]) -> Iterable[Option]:
    calls = [(call, name, source) for source in program.sources for call, name in source.calls]
    given = {entry.function.name, f"{entry.function.name}.main", "fire.Fire"}
    plain = all(_is_alone(call) for call, name, _ in calls if name in given or name.startswith(("click.", "typer.")))
    plain = plain and not any(_is_told(call, name) for call, name, _ in calls if name in given)
    own = {source.place(call) for call, name, source in calls if name in {"click.option", "click.argument"}}
    own |= {entry.source.place(entry.function)}
    return (each for each in options if plain and each.required and each.place in own)


def _of_command_line(program: Program, call: ast.Call, source: PythonSource) -> bool:
    """Whether sys.argv is parsed, whatever it is: nothing is passed, or a parameter that is None and nobody gives."""
    if call.keywords or len(call.args) > 1 or not _is_certain(program, source, call):
        return False
    if not call.args or ast.unparse(call.args[0]) in {"None", "sys.argv[1:]"}:
        return True
    function, word = source.function(call), ast.unparse(call.args[0])
    default = parameters(function).get(word) if function else None
    if function is None or default is None or ast.unparse(default) != "None":
        return False
    return not any(each.args or each.keywords for each, name in source.calls if name == function.name)


def _is_alone(call: ast.Call) -> bool:
    """Whether nothing but the command line gives what a call of click or typer declares."""
    settings = " ".join(ast.unparse(each.value) for each in call.keywords if each.arg == "context_settings")
    return not any(each.arg in _OTHER_SOURCES for each in call.keywords) and not any(
        each in settings for each in _OTHER_SOURCES
    )


def _is_told(call: ast.Call, name: str) -> bool:
    """Whether the call of an entry passes it a command line."""
    own = 1 if name == "fire.Fire" else 0
    return len(call.args) > own or any(each.arg in {"args", "command", None} for each in call.keywords)


def _is_plain(call: ast.Call) -> bool:
    """Whether an argument that nothing else supplies takes at least one word: no count of words that may be none."""
    stated = {each.arg: each.value for each in call.keywords}
    count = literal(stated["nargs"]) if "nargs" in stated else 1
    return None not in stated and (count == "+" or (isinstance(count, int) and count > 0)) and "action" not in stated


def _grouped(sources: Iterable[PythonSource]) -> bool:
    """Whether click or typer starts a group: its first word is a command, though it may have only one."""
    for source in sources:
        if any(each.partition(".")[0] in _BY_COMMAND_LINE for each in source.imports.values()):
            for function in source.functions:
                for each in function.decorator_list:
                    word = source.dotted(each.func if isinstance(each, ast.Call) else each)
                    if word.endswith((".group", ".callback")):
                        return True
    return False


def subcommand_of(program: Program) -> Subcommand:
    """Return the word that a command line with several starts with, where it has several."""
    sources = program.sources
    calls = [(call, name.rpartition(".")[2]) for source in sources for call, name in source.calls]
    if any(name == "LightningCLI" and "run" not in {each.arg for each in call.keywords} for call, name in calls):
        return Subcommand("fit")
    parsers = [call.args[0] for call, name in calls if name == "add_parser" and call.args]
    names = [str(each.value) for each in parsers if isinstance(each, ast.Constant)]
    entries = [each for each in signatures_of(sources) if each.library in _BY_COMMAND_LINE and not each.alone]
    if not _grouped(sources) and len(entries) < 2:
        entries = []
    names += [each.name for each in entries]
    # Their commands are second words, of names that others give.
    nested = bool(_MORE_COMMANDS & {called for _, called in calls})
    name = "" if nested else _training(names)
    keywords = {each.arg for call, _ in sources[0].calls for each in call.keywords}
    own = [each for each in entries if each.source is sources[0]]
    if not own or _NEEDS_NONE & keywords or _parsers(program, sources[:1]):
        return Subcommand(name)
    words = [name] if name else [] if nested else names
    place = own[0].source.place(own[0].function)
    return Subcommand(name, Option("", "subcommand", None, True, place, names=tuple(words)))


def _training(names: list[str]) -> str:
    """Return the one name that says training, else the only one that doesn't say something else."""
    words = {each: {*re.split(r"[-_]", each.lower())} for each in names}
    for chosen in (
        [each for each in names if each in {"train", "fit"}],
        [each for each in words if words[each] & _TRAINS and not words[each] & _NO_TRAINING],
        [each for each in words if not words[each] & _NO_TRAINING],
    ):
        if len(chosen) == 1:
            return chosen[0]
    return ""
