"""`trainlaunch completion`: the completion scripts of bash, zsh and fish, written from the commands' own parsers."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

from trainlaunch.cli.arguments.verb_table import VERBS, Usage, add_arguments, argument
from trainlaunch.cli.output.streams import Streams
from trainlaunch.manuals import manuals

# What stands for an argument in the help says what completes it; any other word completes nothing.
ENDINGS = {"JOB": ("yaml", "yml"), "RUN": ("yaml", "yml"), "SCRIPT": ("py",)}
RUN = "RUN"
ANY_FILE = {"THING", "FILE", "PATH", "PATHS"}
FOLDER = "DIR"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a command; `flags` is empty for a positional one.

    Its value is one of `words`, or a file with one of `endings` (`` takes any file), or a folder, or free text; where
    it may be a run, what `ps --output names` lists too.
    """

    flags: tuple[str, ...]
    summary: str
    takes_value: bool
    repeats: bool
    words: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    folder: bool = False
    run: bool = False


@dataclass(frozen=True, slots=True)
class Verb:
    """One command with its arguments, `--help` included."""

    name: str
    summary: str
    arguments: tuple[Argument, ...]

    @property
    def options(self) -> Iterator[Argument]:
        """Those that start with a dash."""
        return (each for each in self.arguments if each.flags)

    @property
    def positionals(self) -> Iterator[Argument]:
        """Those that don't."""
        return (each for each in self.arguments if not each.flags)


def verbs() -> Iterator[Verb]:
    """Yield each command as its own parser has it."""
    for name, summary in VERBS.items():
        parser = argparse.ArgumentParser()
        add_arguments(parser, importlib.import_module(f"trainlaunch.cli.verbs.{name}").USAGE.arguments)
        yield Verb(name, summary, tuple(_argument(action) for action in parser._actions))


def _argument(action: argparse.Action) -> Argument:
    metavar = str(action.metavar)
    endings = ENDINGS.get(metavar, ())
    return Argument(
        flags=tuple(sorted(action.option_strings, key=len, reverse=True)),
        summary=" ".join((action.help or "").split()),
        takes_value=action.nargs != 0,
        repeats=isinstance(action, argparse._AppendAction) or action.nargs in {"*", "+"},
        words=_words(action),
        endings=("",) if metavar in ANY_FILE else endings,
        folder=metavar == FOLDER,
        run=metavar in {RUN, "THING"},
    )


def _words(action: argparse.Action) -> tuple[str, ...]:
    if action.metavar == "CODE":
        return tuple(word for each in manuals().values() for word in (each.code, each.name))
    return tuple(str(each) for each in action.choices or ())


SHELLS = ("bash", "zsh", "fish")
_BASH_HEAD = """\
# bash completion of trainlaunch, written by `trainlaunch completion bash`
_trainlaunch_words() {
    local IFS=$'\\n'
    COMPREPLY=($(compgen -W "${1// /$'\\n'}" -- "$cur"))
}
_trainlaunch_files() {
    local ending IFS=$'\\n'
    compopt -o filenames 2>/dev/null # one of a path's own characters is quoted, a folder gets its slash
    COMPREPLY=($(compgen -d -- "$cur"))
    for ending; do COMPREPLY+=($(compgen -f -X "!*$ending" -- "$cur")); done
}
_trainlaunch_runs() {
    local run
    while read -r run; do
        if [[ $run == "$cur"* ]]; then COMPREPLY+=("$run"); fi
    done < <("${COMP_WORDS[0]}" ps --output names 2>/dev/null)
}
_trainlaunch() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb='' word
    COMPREPLY=()
    if [[ $cur == = ]]; then
        cur=''
    elif [[ $prev == = ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        if [[ $word != -* ]]; then
            verb=$word
            break
        fi
    done
"""
_BASH_TAIL = "}\ncomplete -F _trainlaunch trainlaunch\n"
_ZSH_HEAD = """\
#compdef trainlaunch
# zsh completion of trainlaunch, written by `trainlaunch completion zsh`
_trainlaunch_runs() {
    local -a runs
    runs=(${(f)"$(trainlaunch ps --output names 2>/dev/null)"})
    compadd -a runs
    _files -g "*.(yaml|yml)"
}
_trainlaunch() {
    local curcontext=$curcontext state line
    typeset -A opt_args
    _arguments -C '(- *)--version[print the version]' '(- *)'{-h,--help}'[print the help]' '1: :->verb' '*:: :->rest'
    if [[ $state == verb ]]; then
        local -a verbs
"""
_ZSH_TAIL = """\
    esac
}
if [[ $funcstack[1] == _trainlaunch ]]; then _trainlaunch "$@"; else compdef _trainlaunch trainlaunch; fi
"""
_FISH_HEAD = """\
# fish completion of trainlaunch, written by `trainlaunch completion fish`
function __trainlaunch_verb
    for word in (commandline -opc)[2..-1]
        if not string match -q -- '-*' $word
            test $word = "$argv[1]"
            return
        end
    end
    test -z "$argv[1]"
end
function __trainlaunch_files
    __fish_complete_path (commandline -ct) | string match -r "^.*(?:/|$argv[1])(?=\\t|\\$)"
end
complete -c trainlaunch -f
complete -c trainlaunch -n "__trainlaunch_verb ''" -l version -d 'print the version'
complete -c trainlaunch -n "__trainlaunch_verb ''" -s h -l help -d 'print the help'
"""
USAGE = Usage(
    examples=(
        "source <(trainlaunch completion bash)  # in ~/.bashrc; zsh: after compinit",
        "trainlaunch completion fish > ~/.config/fish/completions/trainlaunch.fish",
    ),
    exit_codes="0 fine, 2 usage, 70 an internal error, 130 interrupted",
    arguments=(argument("shell", choices=SHELLS, help="the shell that reads the script"),),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Print the script."""
    write = {"bash": bash, "zsh": zsh, "fish": fish}[args.shell]
    streams.result(write(tuple(verbs())))
    return 0


def bash(verbs: Sequence[Verb]) -> str:
    """Return the script of bash; it needs no bash-completion package."""
    lines = ['    case "$verb $prev" in']
    for verb in verbs:
        for option in verb.options:
            if option.takes_value:
                asked = " | ".join(f"'{verb.name} {flag}'" for flag in option.flags)
                lines += [f"    {asked})", f"        {_bash_value(option)}", "        return", "        ;;"]
    lines += ["    esac", "    if [[ $cur == -* ]]; then", "        case $verb in"]
    lines.append("        '') _trainlaunch_words '--version --help' ;;")
    for verb in verbs:
        flags = " ".join(flag for option in verb.options for flag in option.flags)
        lines.append(f"        {verb.name}) _trainlaunch_words {quote(flags)} ;;")
    lines += ["        esac", "        return", "    fi", "    case $verb in"]
    lines.append(f"    '') _trainlaunch_words {quote(' '.join(verb.name for verb in verbs))} ;;")
    for verb in verbs:
        lines += [f"    {verb.name}) {_bash_value(each)} ;;" for each in verb.positionals][:1]
    return "\n".join([_BASH_HEAD + lines[0], *lines[1:], "    esac\n"]) + _BASH_TAIL


def _bash_value(argument: Argument) -> str:
    if argument.words:
        return f"_trainlaunch_words {quote(' '.join(argument.words))}"
    if argument.folder:
        return "_trainlaunch_files"
    if argument.endings:
        runs = "; _trainlaunch_runs" if argument.run else ""
        return f"_trainlaunch_files {' '.join(quote(_dotted(each)) for each in argument.endings)}{runs}"
    return ":"


def _dotted(ending: str) -> str:
    return f".{ending}" if ending else ""


def zsh(verbs: Sequence[Verb]) -> str:
    """Return the script of zsh, to be sourced after compinit or put into $fpath as _trainlaunch."""
    described = [f"            {quote(f'{verb.name}:{_zsh_escaped(verb.summary)}')}" for verb in verbs]
    lines = ["        verbs=(", *described, "        )", "        _describe -t verbs verb verbs", "        return"]
    lines += ["    fi", "    case ${words[1]} in"]
    for verb in verbs:
        specs = [*_zsh_options(verb), *_zsh_positionals(verb)]
        joined = " \\\n            ".join(specs)
        lines += [f"    {verb.name})", f"        _arguments \\\n            {joined}", "        ;;"]
    return _ZSH_HEAD + "\n".join(lines) + "\n" + _ZSH_TAIL


def _zsh_options(verb: Verb) -> Iterator[str]:
    for option in verb.options:
        star = "*" if option.repeats else f"({' '.join(option.flags)})"
        for flag in option.flags:
            joined = ("=" if flag.startswith("--") else "+") if option.takes_value else ""
            value = _zsh_value(option, flag.lstrip("-")) if option.takes_value else ""
            yield quote(f"{star}{flag}{joined}[{_zsh_escaped(option.summary)}]{value}")


def _zsh_positionals(verb: Verb) -> Iterator[str]:
    for position, each in enumerate(verb.positionals, start=1):
        place = "*" if each.repeats else str(position)
        yield quote(f"{place}{_zsh_value(each, _zsh_escaped(each.summary))}")


def _zsh_value(argument: Argument, what: str) -> str:
    if argument.words:
        return f":{what}:({' '.join(argument.words)})"
    if argument.folder:
        return f":{what}:_files -/"
    if argument.run:
        return f":{what}:_trainlaunch_runs"
    if argument.endings == ("",):
        return f":{what}:_files"
    if argument.endings:
        # One ending in parentheses would be a glob qualifier.
        endings = f"({'|'.join(argument.endings)})" if len(argument.endings) > 1 else argument.endings[0]
        return f':{what}:_files -g "*.{endings}"'
    return f":{what}: "


def _zsh_escaped(text: str) -> str:
    for character in "\\[]:":
        text = text.replace(character, f"\\{character}")
    return text


def fish(verbs: Sequence[Verb]) -> str:
    """Return the script of fish."""
    lines = []
    for verb in verbs:
        lines.append(
            f"complete -c trainlaunch -n \"__trainlaunch_verb ''\" -a {verb.name} -d {_fish_quoted(verb.summary)}"
        )
        start = f"complete -c trainlaunch -n '__trainlaunch_verb {verb.name}'"
        for each in verb.arguments:
            flags = "".join(f" -{'l' if flag.startswith('--') else 's'} {flag.lstrip('-')}" for flag in each.flags)
            told = f" -d {_fish_quoted(each.summary)}" if each.flags else ""
            lines.append(f"{start}{flags}{_fish_value(each)}{told}")
    return _FISH_HEAD + "\n".join(lines) + "\n"


def _fish_value(argument: Argument) -> str:
    needs = " -x" if argument.flags and argument.takes_value else ""
    if argument.words:
        return f"{needs} -a {_fish_quoted(' '.join(argument.words))}"
    if argument.folder:
        return f"{needs} -a '(__fish_complete_directories)'"
    if argument.endings == ("",):
        return " -r -F" if argument.flags else " -F"
    if argument.endings:
        pattern = f"\\.(?:{'|'.join(argument.endings)})"
        runs = " (trainlaunch ps --output names 2>/dev/null)" if argument.run else ""
        return f"{needs} -a {_fish_quoted(f'(__trainlaunch_files {_fish_quoted(pattern)}){runs}')}"
    return needs


def _fish_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
