"""`trainlaunch lint`: what is wrong with the texts that people wrote by hand, and the same texts repaired."""

from __future__ import annotations

import argparse
import functools
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainlaunch.cli.arguments.job_arguments import POLICY_ARGUMENTS, is_handed, open_named, reach_of, unreadable
from trainlaunch.cli.arguments.verb_table import Usage, argument
from trainlaunch.cli.output.report import (
    annotation,
    as_json,
    concise,
    document,
    framed,
    printable,
    span_json,
    unified_diff,
)
from trainlaunch.cli.output.sarif import sarif
from trainlaunch.cli.output.streams import Streams, style_of
from trainlaunch.cli.output.write_files import replace_file
from trainlaunch.diagnostics import Diagnostic, Severity
from trainlaunch.errors import UsageError
from trainlaunch.exit_codes import EXIT_FINDINGS
from trainlaunch.job.ceilings import Policy
from trainlaunch.lint.file_kinds import KINDS
from trainlaunch.lint.files import files_of
from trainlaunch.repository.regular_files import read_regular
from trainlaunch.repository.root import Reach
from trainlaunch.rules.sources.source_text import TextFinding
from trainlaunch.units import counted

if TYPE_CHECKING:
    from trainlaunch.lint.linter import Linted


def report(results: Sequence[Linted], output: str, streams: Streams, *, to_stderr: bool) -> None:
    """Print what was found, and the sum on stderr; `to_stderr` where stdout holds a text that was fixed."""
    findings = [finding for each in results for finding in each.findings]
    write = (lambda text: streams.say(text.removesuffix("\n"))) if to_stderr else streams.result
    if output == "json":
        write(document({"findings": [_json(each) for each in findings]}))
    elif output == "sarif":
        write(sarif(findings))
    elif output in {"github", "concise"}:
        line = annotation if output == "github" else concise
        write("".join(f"{line(each.diagnostic)}\n" for each in findings))
    else:
        style = style_of(streams.err if to_stderr else streams.out)
        for each in results:
            for finding in each.findings:
                write(framed(printable(finding.diagnostic), style, text=each.text) + "\n\n")
    streams.finish()
    if output in {"text", "concise"}:
        streams.say(_sum(results, findings))


def _sum(results: Sequence[Linted], findings: Iterable[TextFinding]) -> str:
    counts = Counter(each.severity for each in findings)
    told = ", ".join(counted(counts[each], each.value) for each in Severity if counts[each]) or "no findings"
    fixable = sum(finding.safe for each in results for finding in each.findings)
    return f"linted {counted(len(results), 'file')}: {told}" + (f" ({fixable} that --fix repairs)" if fixable else "")


def _json(finding: TextFinding) -> Mapping[str, object]:
    (content,) = as_json([finding.diagnostic])
    edits = [{"span": span_json(each.span), "text": each.text} for each in finding.edits]
    known = {"verdict": finding.purpose.verdict, "signs": list(finding.purpose.signs)} if finding.purpose else None
    more = {} if known is None else {"purpose": known}
    return {"code": content["code"], "name": finding.name, **content, "edits": edits, "safe": finding.safe, **more}


_OFTEN, _LONG = 500, 5.0  # files, and seconds from which on progress is told
_MAX_BASELINE_BYTES = 64 * 1024 * 1024  # bytes: some hundred thousand findings
_GRAVITY = {"error": 2, "warning": 1, "info": 0}
_GROUPS = {"defects": ("defects",), "practice": ("practice",), "all": ("defects", "practice")}
USAGE = Usage(
    examples=(
        "trainlaunch lint",
        "trainlaunch lint compose.yaml run.sh --fix",
        "kustomize build overlays/gpu | trainlaunch lint -",
    ),
    exit_codes=(
        "0 nothing as grave as --fail-on (with --fix: after it), 1 findings, 2 usage, or a folder or file of which "
        "nothing was read, 70 an internal error, 130 interrupted"
    ),
    arguments=(
        argument(
            "paths",
            nargs="*",
            type=Path,
            default=[Path()],
            metavar="PATH",
            help="files, folders, or - for stdin (default: the current folder; what .gitignore names is left out)",
        ),
        argument(
            "--kind",
            choices=KINDS,
            metavar="KIND",
            help=f"what the named files are, where neither name nor content tells: {', '.join(KINDS)}",
        ),
        argument("--select", choices=tuple(_GROUPS), default="defects", help="which rules: defects, practice, or all"),
        argument(
            "--fail-on", choices=tuple(_GRAVITY), default="error", help="the least severity that makes the exit code 1"
        ),
        argument(
            "--files-from-hook",
            action="store_true",
            help="the files are those of a commit, of which none may be one that is read",
        ),
        argument("--fix", action="store_true", help="make the safe fixes in the files, - on stdout"),
        argument("--diff", action="store_true", help="print the safe fixes as a diff and change nothing"),
        *POLICY_ARGUMENTS,
        argument("--baseline", type=Path, metavar="FILE", help="leave out the findings that FILE holds"),
        argument("--write-baseline", type=Path, metavar="FILE", help="write all findings of today to FILE"),
        argument(
            "-o",
            "--output",
            choices=("text", "concise", "json", "sarif", "github"),
            default="text",
            help="format of the result",
        ),
    ),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Look into each file, report, and fix where that is asked for."""
    from trainlaunch.lint.linter import fixed

    groups = _GROUPS[args.select]
    known = _baseline(args.baseline)
    results: list[Linted] = []
    reach = reach_of(args)
    started = time.monotonic()
    for linted in _linted(args, groups, reach):
        _tell_progress(results, started, streams)
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
        streams.result("".join(unified_diff(linted.name, linted.text, after.text)))
        return

    replace_file(Path(linted.name), after.text)
    streams.say(f"wrote {linted.name}")


def _write_baseline(path: Path, results: Iterable[Linted], streams: Streams) -> None:
    from trainlaunch.lint.linter import baseline_text

    replace_file(path, baseline_text(results))
    streams.say(f"wrote {path}")


def _tell_progress(results: Sequence[Linted], started: float, streams: Streams) -> None:
    """Say on a terminal how far a long look has come."""
    if len(results) % _OFTEN == _OFTEN - 1 and streams.err.isatty() and time.monotonic() - started > _LONG:
        streams.say(f"linted {len(results) + 1} files so far")


def _unread(results: Iterable[Linted], paths: Sequence[Path]) -> Iterator[Path]:
    """Yield each named folder of which nothing was read; of named files the first, where none of them was."""
    names = [Path(each.name) for each in results]
    folders = [each for each in paths if each.is_dir()]
    yield from (each for each in folders if not any(_is_below(name, each) for name in names))
    if not folders and not names:
        yield from paths[:1]


def _is_below(name: Path, folder: Path) -> bool:
    return folder == Path() or name.is_relative_to(folder)


def _reported(results: list[Linted], args: argparse.Namespace, streams: Streams) -> int:
    unread = [] if args.files_from_hook else list(_unread(results, args.paths))
    if unread and not results:
        raise UsageError([_nothing(unread)])
    quiet = args.diff or (args.fix and Path("-") in args.paths)
    report(results, args.output, streams, to_stderr=quiet)
    counts = Counter(finding.severity for each in results for finding in each.findings)
    if unread:
        raise UsageError([_nothing(unread)])
    least = _GRAVITY[args.fail_on]
    return EXIT_FINDINGS if any(_GRAVITY[each.value] >= least for each in counts) else 0


def _nothing(paths: Iterable[Path]) -> Diagnostic:
    return Diagnostic(
        "TL395",
        f"nothing that lint reads is in {', '.join(map(str, paths))}",
        "name what starts training: a script or Markdown with docker lines, a Compose file, a manifest, a CI job, a "
        "Dockerfile, a job file; or a file with --kind",
        severity=Severity.ERROR,
    )
