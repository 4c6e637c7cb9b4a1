"""`trainlaunch lint`: what is wrong with the texts that people wrote by hand, and the same texts repaired."""

from __future__ import annotations

import argparse
import difflib
import functools
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from trainlaunch.cli.arguments.job_arguments import add_policy_argument, reach_of
from trainlaunch.cli.arguments.named_file import is_handed, open_named, unreadable
from trainlaunch.cli.output.lint_output import report
from trainlaunch.cli.output.streams import Streams
from trainlaunch.cli.output.write_files import replace_file
from trainlaunch.diagnostics import Diagnostic, Severity
from trainlaunch.errors import UsageError
from trainlaunch.exit_codes import EXIT_FINDINGS
from trainlaunch.job.ceilings import Policy
from trainlaunch.lint.files import files_of
from trainlaunch.repository.regular_files import read_regular
from trainlaunch.repository.root import Reach

if TYPE_CHECKING:
    from trainlaunch.lint.linter import Linted
    from trainlaunch.rules.sources.source_text import TextFinding

EXAMPLES = (
    "trainlaunch lint",
    "trainlaunch lint compose.yaml run.sh --fix",
    "kustomize build overlays/gpu | trainlaunch lint -",
)
EXIT_CODES = (
    "0 nothing as grave as --fail-on (with --fix: after it), 1 findings, or folders with nothing to lint, 2 usage, "
    "70 a bug of ours, 130 interrupted"
)
_MAX_BASELINE_BYTES = 64 * 1024 * 1024  # bytes: some hundred thousand findings
_GRAVITY = {"error": 2, "warning": 1, "info": 0}
_GROUPS = {"defects": ("defects",), "practice": ("practice",), "all": ("defects", "practice")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    from trainlaunch.lint.file_kinds import KINDS

    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        default=[Path()],
        metavar="PATH",
        help="files, folders, or - for stdin (default: the current folder; what .gitignore names is left out)",
    )
    parser.add_argument(
        "--kind",
        choices=KINDS,
        metavar="KIND",
        help=f"what the named files are, where neither name nor content tells: {', '.join(KINDS)}",
    )
    parser.add_argument(
        "--select", choices=tuple(_GROUPS), default="defects", help="which rules: defects, practice, or all"
    )
    parser.add_argument(
        "--fail-on", choices=tuple(_GRAVITY), default="error", help="the least severity that makes the exit code 1"
    )
    parser.add_argument("--fix", action="store_true", help="make the safe fixes in the files, - on stdout")
    parser.add_argument("--diff", action="store_true", help="print the safe fixes as a diff and change nothing")
    add_policy_argument(parser)
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="leave out the findings that FILE holds")
    parser.add_argument("--write-baseline", type=Path, metavar="FILE", help="write all findings of today to FILE")
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "concise", "json", "sarif", "github"),
        default="text",
        help="format of the result",
    )


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Look into each file, report, and fix where that is asked for."""
    from trainlaunch.lint.linter import fixed

    groups = _GROUPS[args.select]
    known = _baseline(args.baseline)
    results: list[Linted] = []
    reach = reach_of(args)
    for linted in _linted(args, groups, reach):
        policy = _policy(Path(linted.name).parent, args.policy, reach)
        after = fixed(linted, args.kind, groups, policy) if args.fix or args.diff else linted
        _write(linted, after, args, streams)
        results.append(after if args.fix else linted)
    if args.write_baseline is not None:
        _write_baseline(args.write_baseline, results, streams)
        return 0
    kept = [each._replace(findings=tuple(_new(each, known))) for each in results]
    return _reported(kept, args, streams)


def _linted(args: argparse.Namespace, groups: tuple[str, ...], reach: Reach) -> Iterator[Linted]:
    from trainlaunch.lint.linter import MAX_BYTES, lint_bytes, lint_file, unopened

    handed = dict.fromkeys(str(each) for each in args.paths if is_handed(str(each)))
    for name in handed:
        with open_named(name, name) as file:
            yield lint_bytes(file.read(MAX_BYTES + 1), "-", args.kind, groups, _policy(Path(), args.policy, reach))
    named = [each for each in args.paths if str(each) not in handed]
    for path in named:
        if not path.exists():
            raise UsageError([_absent(path)])
    for path in files_of(named):
        kind = args.kind if path in named else None
        try:
            linted = lint_file(path, kind, groups, _policy(path.parent, args.policy, reach))
        except OSError as cause:
            if path in named:
                raise unreadable(str(path), cause) from cause
            linted = unopened(path, cause.strerror or str(cause))
        if linted.kind is not None:
            yield linted


@functools.lru_cache
def _policy(folder: Path, asked: Path | None, reach: Reach) -> Policy | None:
    """Return what the policies in force ask of the texts of a folder. Raises JobFileRejected where one is wrong."""
    from trainlaunch.policy import policies_in

    return policies_in(folder, policy=asked, reach=reach)


def _absent(path: Path) -> Diagnostic:
    return Diagnostic("TL118", f"{path} does not exist", "name a file or folder that is there")


def _baseline(path: Path | None) -> Counter[str]:
    if path is None:
        return Counter()
    from trainlaunch.lint.linter import read_baseline

    try:
        return read_baseline(read_regular(path, _MAX_BASELINE_BYTES).decode())
    except (OSError, ValueError) as cause:
        fix = f"write it with `trainlaunch lint --write-baseline {path}`"
        raise UsageError([Diagnostic("TL118", f"{path} is not a baseline that can be read: {cause}", fix)]) from cause


def _new(linted: Linted, known: Counter[str]) -> Iterator[TextFinding]:
    if not known:
        return iter(linted.findings)
    from trainlaunch.lint.linter import new_findings

    return new_findings(linted, known)


def _write(linted: Linted, after: Linted, args: argparse.Namespace, streams: Streams) -> None:
    """Write a text that fixes changed, or its difference."""
    if args.fix and linted.name == "-":
        streams.result(after.text)
        return
    if after.text == linted.text:
        return
    if args.diff:
        streams.result(_diff(linted, after))
        return

    replace_file(Path(linted.name), after.text)
    streams.say(f"wrote {linted.name}")


def _diff(linted: Linted, after: Linted) -> str:
    name = linted.name.lstrip("/")
    have, now = (each.text.splitlines(keepends=True) for each in (linted, after))
    lines = difflib.unified_diff(have, now, f"a/{name}", f"b/{name}")
    return "".join(each if each.endswith("\n") else f"{each}\n\\ No newline at end of file\n" for each in lines)


def _write_baseline(path: Path, results: Iterable[Linted], streams: Streams) -> None:
    from trainlaunch.lint.linter import baseline_text

    replace_file(path, baseline_text(results))
    streams.say(f"wrote {path}")


def _reported(results: list[Linted], args: argparse.Namespace, streams: Streams) -> int:
    if not results and all(each.is_dir() for each in args.paths):
        raise UsageError([_nothing(args.paths)])
    quiet = args.diff or (args.fix and Path("-") in args.paths)
    report(results, args.output, streams, to_stderr=quiet)
    counts = Counter(finding.severity for each in results for finding in each.findings)
    least = _GRAVITY[args.fail_on]
    return EXIT_FINDINGS if any(_GRAVITY[each.value] >= least for each in counts) else 0


def _nothing(paths: Iterable[Path]) -> Diagnostic:
    return Diagnostic(
        "TL395",
        f"no file that lint reads is in {', '.join(map(str, paths))}",
        "name the folder that holds them, or a file with --kind",
        severity=Severity.ERROR,
    )
