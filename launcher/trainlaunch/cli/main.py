"""The `trainlaunch` program: one parser, and a module for each command, imported only when that command is called."""

from __future__ import annotations

import argparse
import gc
import importlib
import re
import sys
from collections.abc import Sequence
from itertools import groupby
from types import ModuleType
from typing import Any, NoReturn

from trainlaunch import __version__
from trainlaunch.cli.arguments.verb_table import (
    OTHERS_VERBS,
    VERB_GROUPS,
    VERBS,
    VERBS_WITH_A_COMMAND,
    VERBS_WITH_THE_JOBS_CODE,
    Usage,
    add_arguments,
)
from trainlaunch.cli.output.report import as_json, document, framed
from trainlaunch.cli.output.streams import Streams, standard_streams, style_of
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.did_you_mean import closest
from trainlaunch.errors import JobFileRejected, LaunchError, TargetUnavailable, UsageError
from trainlaunch.exit_codes import EXIT_BEFORE_START, EXIT_BUG, EXIT_INTERRUPTED, EXIT_USAGE

MAX_SAID = 10  # errors; a JSON document has all
OBJECTS_BETWEEN_COLLECTIONS = 20_000  # what a start makes, it keeps: Python's 700 would have it searched 100 times
USAGE_WIDTH = 78  # columns of a usage line; help takes the terminal's


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    streams = standard_streams()
    try:
        return _run(list(sys.argv[1:] if argv is None else argv), streams)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    finally:
        streams.close()
        if argv is None:  # the process ends: nothing need be searched once more
            gc.freeze()


def _run(words: list[str], streams: Streams) -> int:
    verb = next((word for word in words if not word.startswith("-")), None)
    module = importlib.import_module(f"trainlaunch.cli.verbs.{verb}") if verb in VERBS else None
    if verb is not None and module is None:
        return _unknown_verb(verb, words, streams)
    try:
        args = _parsed(verb, module, words)
    except UsageError as wrong:
        return _stopped(wrong, streams, as_document=_asks_for_json(words))
    if module is None:  # no command: parse_args has printed the version, the help or the usage
        return EXIT_USAGE
    return _guarded(module, args, streams)


def _unknown_verb(verb: str, words: Sequence[str], streams: Streams) -> int:
    ours = OTHERS_VERBS.get(verb)
    swapped = next((each for each in VERBS if sorted(each) == sorted(verb)), None)
    nearest = swapped or closest(verb, VERBS, cutoff=0.76)  # `hint` is no misspelt `lint`
    fix = f"write {nearest}" if nearest else "`trainlaunch --help` lists the commands"
    fix = f"write trainlaunch {ours}" if ours else fix
    stated = next((word for word in words if word in VERBS), None)
    if words[0].startswith("-") and stated:
        fix = f"write the command first: trainlaunch {stated} …"
    _say_all([Diagnostic("TL117", f"trainlaunch has no command {verb}", fix)], streams)
    return EXIT_USAGE


def _parsed(verb: str | None, module: ModuleType | None, words: list[str]) -> argparse.Namespace:
    """Return the arguments; what no command takes is said beside the usage of the chosen one. Raises UsageError."""
    command: list[str] = []
    if verb in VERBS_WITH_A_COMMAND and "--" in words:  # argparse would look for options of ours in it
        words, command = words[: words.index("--")], words[words.index("--") + 1 :]
    parser, chosen = _parser(verb, module, words)
    if verb in VERBS_WITH_A_COMMAND and not command and words[0] == verb:
        from trainlaunch.cli.arguments.command_words import missing_dashes

        if (found := missing_dashes(chosen, words)) is not None:
            chosen.error(found.message, fix=found.fix)
    args, unknown = parser.parse_known_args(words)
    if verb == "policy" and unknown == words[-1:] and "export" in words and not unknown[0].startswith("-"):
        # argparse takes an optional argument for absent where options part it from the one before.
        place = words.index("export") + 1
        args, unknown = parser.parse_known_args([*words[:place], *unknown, *words[place:-1]])
    if unknown:
        chosen.error(f"unrecognized arguments: {' '.join(unknown)}", unknown=unknown)
    if command:
        args.command = [*args.command, *command]
    args.words = words
    return args


class _Help(argparse.HelpFormatter):
    """Wraps paragraphs; an indented line, as of an example, stays as it is."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Return a description or an epilog."""
        lines: list[str] = []
        for prose, group in groupby(text.splitlines(), lambda line: line[:1] not in {"", " "}):
            said = list(group)
            lines += [super()._fill_text(" ".join(said), width, indent)] if prose else said
        return "\n".join(lines)

    def _format_action(self, action: argparse.Action) -> str:
        """Return the commands in their groups, and anything else as it is."""
        if not isinstance(action, argparse._SubParsersAction):
            return super()._format_action(action)
        listed = {each.dest: each for each in action._choices_actions}
        lines: list[str] = []
        for title, group in VERB_GROUPS.items():
            lines.append(f"  {title}:\n")
            self._indent()
            self._indent()
            lines += [super(_Help, self)._format_action(listed[verb]) for verb in group]
            self._dedent()
            self._dedent()
        return "".join(lines)


class _Parser(argparse.ArgumentParser):
    """Raises UsageError where argparse would end the process, so that a usage error reads like any other."""

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write help or the version whole or raise UsageError, where argparse ignores what can't be written."""
        if file is not sys.stdout:
            super()._print_message(message, file)
            return
        streams = standard_streams()
        streams.result(message)
        streams.finish()

    def error(self, message: str, *, unknown: Sequence[str] = (), fix: str = "") -> NoReturn:
        """Print the usage and raise; `unknown` are the words that nothing takes, `fix` is what to type."""
        self.print_usage(sys.stderr)
        close = self._meant(unknown) or self._meant_choice(message) or self._meant_field(unknown)
        fix = fix or (f"write {close}" if close else f"`{self.prog} --help` tells what it takes")
        raise UsageError([Diagnostic("TL118", message, fix)])

    def _meant(self, unknown: Sequence[str]) -> str:
        """Return the option whose name is nearest to the first unknown one, `` where none is near."""
        option = next((each.partition("=")[0] for each in unknown if each.startswith("--")), "")
        known = [each for each in self._option_string_actions if each.startswith("--")]
        return closest(option, known, cutoff=0.75) if option else ""

    def _meant_field(self, unknown: Sequence[str]) -> str:
        """Return how a command that takes a job is told what an option of docker run says; `` where it can't be."""
        option = next((each for each in unknown if each.startswith("-")), "")
        if not option or "--set" not in self._option_string_actions:
            return ""
        from trainlaunch.formats.docker.table import FLAGS, SHORT

        word, _, value = option.lstrip("-").partition("=")
        flag = FLAGS.get(word) if option.startswith("--") else SHORT.get(word[:1])
        job_field = flag and (flag.job_field or flag.field)
        if flag is None or not job_field:
            return ""
        at = list(unknown).index(option) + 1
        value = value or (unknown[at] if at < len(unknown) else "VALUE")
        typed = f"{job_field}.{value}" if job_field == "env" else f"{job_field}={value}"
        return f"--set {typed}, or {job_field} in the job file"

    def _meant_choice(self, message: str) -> str:
        """Return the choice that is nearest to the one that argparse's `message` refuses, `` where none is near."""
        refused = re.fullmatch(r"argument (\S+): invalid choice: '(.*)' \(choose from [^()]*\)", message, re.DOTALL)
        if refused is None:
            return ""
        action = self._option_string_actions.get(refused[1].partition("/")[0])
        words = [str(each) for each in (action.choices if action and action.choices else ())]
        close = closest(refused[2], words)
        return f"{refused[1].rpartition('/')[2]} {close}" if close else ""


def _asks_for_json(words: Sequence[str]) -> bool:
    """Return whether a command line that can't be parsed asks for JSON."""
    return re.search(r"(?:^|\n)(?:-o\n?|--output[\n=])json(?:\n|$)", "\n".join(words)) is not None


def _parser(verb: str | None, module: ModuleType | None, words: Sequence[str]) -> tuple[_Parser, _Parser]:
    """Return the parser and the chosen command's; only that one's arguments are built, so the others cost nothing."""
    asks_help = bool({"-h", "--help"} & {*words})

    def formatter(prog: str) -> argparse.HelpFormatter:
        # argparse makes one for each argument, and one without a width loads shutil to measure the terminal.
        return _Help(prog, width=None if asks_help else USAGE_WIDTH)

    parser = _Parser(
        prog="trainlaunch",
        description="Makes a PyTorch job start right: alone, in a container, and on a cluster.",
        epilog="examples:\n  trainlaunch run -- python train.py\n  trainlaunch init train.py --write-to job.yaml\n"
        "  trainlaunch up job.yaml\n  trainlaunch render job.yaml --target kubernetes\n\n"
        "`trainlaunch COMMAND --help` shows a command's options and exit codes.",
        formatter_class=formatter,
    )
    parser.add_argument("--version", action="version", version=f"trainlaunch {__version__}")
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", dest="verb", required=True)
    chosen: _Parser | None = None
    # An option before the command may ask for the help of all.
    listed = {verb: VERBS[verb]} if verb is not None and words[:1] == [verb] else VERBS
    for name, summary in listed.items():
        if module is None or name != verb:
            verbs.add_parser(name, help=summary, formatter_class=formatter)
            continue
        usage: Usage = module.USAGE
        examples = "\n".join(f"  {each}" for each in usage.examples)
        chosen = verbs.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=f"examples:\n{examples}\n\nexit codes: {usage.exit_codes}",
            formatter_class=formatter,
        )
        add_arguments(chosen, usage.arguments)
    return parser, chosen or parser


def _guarded(module: ModuleType, args: argparse.Namespace, streams: Streams) -> int:
    try:
        code: int = module.run(args, streams)
        streams.finish()
    except LaunchError as stop:
        _stopped(stop, streams, as_document=getattr(args, "output", "text") == "json")
        before_start = args.verb in VERBS_WITH_THE_JOBS_CODE or getattr(args, "follow", False)
        if before_start and isinstance(stop, (JobFileRejected, TargetUnavailable)):
            return EXIT_BEFORE_START
        return stop.exit_code
    except BrokenPipeError:
        streams.abandon()  # the reader went away (`| head`): not an error of ours, and nobody is left to tell
        return EXIT_INTERRUPTED
    except Exception:
        _say_all((_bug(args.verb),), streams)
        return EXIT_BUG
    return code


def _stopped(stop: LaunchError, streams: Streams, *, as_document: bool) -> int:
    """Say why nothing more happens and return the exit code; who asked for JSON gets a document on failure too."""
    _say_all(stop.diagnostics, streams)
    if as_document and not stop.documented:
        streams.result(document({"findings": as_json(stop.diagnostics)}))
    return stop.exit_code


def _say_all(diagnostics: Sequence[Diagnostic], streams: Streams) -> None:
    """Say the first of them: a file of another kind has hundreds, and their end would be all that a terminal shows."""
    shown = style_of(streams.err)
    for diagnostic in diagnostics[:MAX_SAID]:
        streams.say(framed(diagnostic, shown))
    if len(diagnostics) > 1:
        first = f"; these are the first {MAX_SAID}" if len(diagnostics) > MAX_SAID else ""
        streams.say(f"{len(diagnostics)} problems{first}")


def _bug(verb: str) -> Diagnostic:
    import traceback

    return Diagnostic(
        "TL901",
        f"trainlaunch {__version__} broke in `{verb}`",
        "report it with the traceback above this line",
        why=traceback.format_exc().rstrip().replace("\n", "\n          "),
    )


if __name__ == "__main__":
    raise SystemExit(main())
