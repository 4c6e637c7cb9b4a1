"""`trainlaunch check`: are the committed rendered files what their job files render now?"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trainlaunch.cli.arguments.job_arguments import POLICY_ARGUMENTS, open_named, reach_of
from trainlaunch.cli.arguments.verb_table import Usage, argument
from trainlaunch.cli.output.report import annotation, as_json, document, framed, unified_diff
from trainlaunch.cli.output.streams import Streams, style_of
from trainlaunch.cli.output.write_files import remove_temporaries, replace_file
from trainlaunch.diagnostics import Diagnostic, Severity
from trainlaunch.exit_codes import EXIT_FINDINGS
from trainlaunch.targets import KUBERNETES
from trainlaunch.units import counted

if TYPE_CHECKING:
    from trainlaunch.committed.cluster_changes import ClusterChange
    from trainlaunch.committed.comparison import Checked

USAGE = Usage(
    examples=(
        "trainlaunch check",
        "trainlaunch check deploy/ k8s/ --fix",
        "trainlaunch check --output github    # in a GitHub workflow: annotations",
        "kustomize build prod | trainlaunch check - k8s/",
    ),
    exit_codes=(
        "0 all are current (with --fix: now), 1 one differs or can't be compared, or there is nothing to "
        "check, 2 usage, 70 an internal error, 130 interrupted"
    ),
    arguments=(
        argument(
            "paths",
            nargs="*",
            type=Path,
            default=[Path()],
            metavar="PATH",
            help="rendered files, or folders that hold some (default: the current folder; of hidden ones .github, "
            ".gitlab and .devcontainer are entered); - compares what `kustomize build` made of them, on stdin",
        ),
        *POLICY_ARGUMENTS,
        argument("--strict", action="store_true", help="fail on warnings too, those of the jobs among them"),
        argument(
            "--all-rendered",
            action="store_true",
            help="fail on a job file in these folders that has no rendered file there",
        ),
        argument("--fix", action="store_true", help="update outdated files"),
        argument(
            "-o",
            "--output",
            choices=("text", "json", "github"),
            default="text",
            help="format of the result (text: a diff)",
        ),
    ),
)


def run(args: argparse.Namespace, streams: Streams) -> int:
    """Find, render again, compare; print the differences or write them."""
    from trainlaunch.committed.built_manifests import changed_after_proof
    from trainlaunch.committed.check_renderings import compare_all, find_renderings, rewritten
    from trainlaunch.committed.comparison import not_rendered, review_all, without_header

    counts: Counter[str] = Counter()
    reporter = _Reporter(args.output, streams)
    reach, built = reach_of(args), _built(args)
    found, everything = find_renderings(args.paths, reach=reach), []
    for folder in {each.resolve().parent for each in found.renderings} if args.fix else ():
        remove_temporaries(folder)  # of a `check --fix` that was killed, after which nothing may differ
    for checked in compare_all(found.renderings, policy=args.policy, reach=reach):
        status = checked.status
        everything.append(replace(checked, text="", now=""))
        if args.fix and status == "differs":
            replace_file(checked.path, rewritten(checked, policy=args.policy, reach=reach))
            status = "fixed"
        counts[status] += 1
        reporter.take(checked, status)
    if built is not None:
        current = [each for each in everything if each.status == "current" and each.target == KUBERNETES.name]
        reporter.findings(changed_after_proof(built, current))
    said = [*found.unread, *review_all(everything), *filter(None, map(without_header, found.others))]
    reporter.findings([*said, *(not_rendered(args.paths, everything, reach) if args.all_rendered else ())])
    if not counts and not reporter.said:
        reporter.findings([_nothing(args.paths)])
    reporter.end(counts)
    if not counts:
        return EXIT_FINDINGS
    worst = {each.severity for each in reporter.said}
    fails = counts["differs"] or counts["rejected"] or Severity.ERROR in worst
    return EXIT_FINDINGS if fails or (args.strict and Severity.WARNING in worst) else 0


def _built(args: argparse.Namespace) -> str | None:
    """Return what stdin holds where `-` is among the paths, which it then leaves, else None."""
    if Path("-") not in args.paths:
        return None
    args.paths = [each for each in args.paths if each != Path("-")] or [Path()]
    with open_named("-", "stdin") as stdin:
        return stdin.read().decode(errors="replace")


class _Reporter:
    """Says what was found, in one of the three formats; the same finding of a job file is said once."""

    def __init__(self, output: str, streams: Streams) -> None:
        self._output = output
        self._streams = streams
        self.said: dict[Diagnostic, None] = {}
        self._renderings: list[Mapping[str, object]] = []
        self._policies: dict[str, None] = {}
        self._changes: list[ClusterChange] = []
        self._diffs: dict[str, list[str]] = {}

    def take(self, checked: Checked, status: str) -> None:
        """Report one rendered file."""
        self._policies.update(dict.fromkeys(checked.policies))
        if status == "fixed":
            self._streams.say(f"wrote {checked.path}")
        told = status == "differs" and self._output != "github" and not checked.outdated
        diff = "".join(unified_diff(checked.path.as_posix(), checked.text, checked.now)) if told else ""
        if checked.change is not None:
            self._changes.append(checked.change)
        if self._output == "json":
            entry = {"path": str(checked.path), "job": checked.job, "target": checked.target, "status": status}
            change = None if checked.change is None else checked.change._asdict()
            self._renderings.append({**entry, "policies": list(checked.policies), "diff": diff, "cluster": change})
        elif self._output == "text" and diff:
            cause = "" if checked.change is None else ", ".join(checked.change.causes)
            self._diffs.setdefault(cause, []).append(diff)
        told_by_fix = status == "fixed"  # then the first, that it differs, is no longer so
        self.findings(checked.findings[told_by_fix:])

    def findings(self, findings: Iterable[Diagnostic]) -> None:
        """Report findings, each once."""
        for finding in findings:
            if finding in self.said:
                continue
            self.said[finding] = None
            if self._output == "github":
                self._streams.result(annotation(finding) + "\n")
            elif self._output == "text":
                self._streams.say(framed(finding, style_of(self._streams.err)))

    def end(self, counts: Mapping[str, int]) -> None:
        """Report the sum, what a cluster makes of it, and then the differences."""
        from trainlaunch.committed.cluster_changes import summary

        if self._output == "json":
            findings = as_json(self.said)
            whole = {"renderings": self._renderings, "cluster": summary(self._changes) or None, "findings": findings}
            self._streams.result(document(whole))
        if not counts:
            return
        words = {"current": "current", "fixed": "written again", "differs": "differ", "rejected": "can't be compared"}
        told = ", ".join(f"{counts[status]} {word}" for status, word in words.items() if counts[status])
        if self._policies:
            self._streams.say(f"policies in force: {', '.join(self._policies)}")
        self._streams.say(f"checked {counted(sum(counts.values()), 'rendered file')}: {told}")
        if self._changes and self._output == "text":
            self._streams.say(summary(self._changes))
        for diffs in self._diffs.values():  # last, since they are long; those of one cause together
            self._streams.show("".join(diffs))


def _nothing(paths: Iterable[Path]) -> Diagnostic:
    return Diagnostic(
        "TL123",
        f"found no rendered files in {', '.join(map(str, paths))}",
        "name the folder that holds them, or write some with `trainlaunch render JOB --write-to DIR`",
        why="*.yaml, *.yml, *.sh, *.json and *.Dockerfile files are looked for whose first lines say `Rendered by "
        "trainlaunch from`",
    )
