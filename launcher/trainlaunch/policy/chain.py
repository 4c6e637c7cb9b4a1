"""Which policies are in force for a job, and what they ask together: the strictest of each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from trainlaunch.diagnostics import Report, Severity, Span
from trainlaunch.job.ceilings import Allowed, Limit, Policy, Weight
from trainlaunch.job.names import shown
from trainlaunch.policy.file import PolicyFile, read_policy
from trainlaunch.policy.layer import PolicyLayer
from trainlaunch.repository.root import Reach, outside
from trainlaunch.yamltree.source import MappingNode, Scalar
from trainlaunch.yamltree.text_file import read_text

NOUN = "policy"
_STRICTNESS = (None, Severity.INFO, Severity.WARNING, Severity.ERROR)


def policies_of(
    job_file: Path, root: MappingNode, asked: Path | None, found: list[Path], reach: Reach, report: Report
) -> PolicyLayer | None:
    """Return the policies of a job: `asked` alone, else the one that it names over those `found` upward; None: none.

    Each brings those that it extends. What is wrong with them is put in `report`, and so is what lies out of `reach`.
    """
    node = root.items["policy"][1] if "policy" in root.items else None
    # No path holds U+0000, which the job's reader says.
    stated = node if isinstance(node, Scalar) and not node.null and "\0" not in node.text else None
    named = [Path(os.path.normpath(job_file.parent / stated.text))] if stated else []
    if stated and asked is None and not reach.holds(named[0], job_file):
        fix = f"move it into the repository, or add `--policy {named[0]}` if you trust it"
        report.take(outside(job_file, f"policy: {shown(stated.text)}", reach, fix, stated.span))
        return None
    otherwise = [*named, *found]
    chain = _Chain(report, reach, stated.span if stated and not asked else None)
    for path in otherwise if asked is None else [asked]:
        chain.add(path)
    fixed = {str(each) for each in (asked, stated and Path(stated.text)) if each and each.is_absolute()}
    option = asked is not None and not _same([asked], otherwise)
    if not chain.files:
        return None
    whole = strictest(each.asked for each in chain.files)
    option_path = str(asked) if option else None
    return PolicyLayer(tuple(chain.files), whole._replace(option=option_path, fixed=chain.fixed | fixed))


def _same(some: list[Path], others: list[Path]) -> bool:
    return list(map(os.path.realpath, some)) == list(map(os.path.realpath, others))


class _Chain:
    """Files in the order in which they lie beneath a job, each read once."""

    def __init__(self, report: Report, reach: Reach, span: Span | None) -> None:
        self.files: list[PolicyFile] = []
        self.fixed: frozenset[str] = frozenset()
        self._report = report
        self._reach = reach
        self._span = span
        self._seen: set[str] = set()

    def add(self, path: Path) -> None:
        """Add the policy at `path` and those that it extends."""
        span, above = self._span, set[str]()
        while True:
            real = os.path.realpath(path)
            if real in self._seen:
                return
            self._seen.add(real)
            above.add(real)
            file = self._read(path, span)
            if file is None:
                return
            self.files.append(file)
            if file.extends is None:
                return
            span, text = file.extends.span, file.extends.text
            above_it, path = path, Path(os.path.normpath(path.parent / text))
            if not self._reach.holds(path, above_it):
                fix = f"add `--allow-outside {path.parent}`, or move it into the repository"
                self._report.take(outside(above_it, f"extends: {shown(text)}", self._reach, fix, span))
                return
            if Path(text).is_absolute():
                self.fixed |= {str(path)}
            if os.path.realpath(path) in above:
                message = f"the policy extends {text}, which leads back to it"
                fix = "delete extends in one of them"
                self._report.add("TL107", file.extends, message=message, fix=fix, field="extends")
                return

    def _read(self, path: Path, span: Span | None) -> PolicyFile | None:
        own = Report()
        text = read_text(path, own, NOUN)
        file, wrong = (None, ()) if text is None else read_policy(text, str(path))
        for each in (*own.found(), *wrong):
            self._report.take(each if each.span else each._replace(span=span))
        return file


def strictest(asked: Iterable[Policy]) -> Policy:
    """Return what all of them ask together: the lowest ceiling, every list and demand, the higher severity."""
    each = tuple(asked)
    return Policy(
        files=tuple(path for one in each for path in one.files),
        option=None,
        fixed=frozenset(),
        max=_lowest(item for one in each for item in one.max.items()),
        allowed=_all_lists(item for one in each for item in one.allowed.items()),
        required=tuple(dict.fromkeys(item for one in each for item in one.required)),
        required_labels=tuple(dict.fromkeys(item for one in each for item in one.required_labels)),
        severities=_strictest_weights(item for one in each for item in one.severities.items()),
        digest_span=next((one.digest_span for one in each if one.digest_span), None),
        token_span=next((one.token_span for one in each if one.token_span), None),
        render_path=next((one.render_path for one in each if one.render_path), None),
        render_targets=next((one.render_targets for one in each if one.render_targets), ()),
    )


def _lowest(limits: Iterable[tuple[str, Limit]]) -> dict[str, Limit]:
    found: dict[str, Limit] = {}
    for name, limit in limits:
        if name not in found or limit.value < found[name].value:
            found[name] = limit
    return found


def _all_lists(lists: Iterable[tuple[str, tuple[Allowed, ...]]]) -> dict[str, tuple[Allowed, ...]]:
    found: dict[str, tuple[Allowed, ...]] = {}
    for name, allowed in lists:
        found[name] = (*found.get(name, ()), *allowed)
    return found


def _strictest_weights(weights: Iterator[tuple[str, Weight]]) -> dict[str, Weight]:
    found: dict[str, Weight] = {}
    for code, weight in weights:
        known = found.get(code)
        if known is None or _STRICTNESS.index(weight.severity) > _STRICTNESS.index(known.severity):
            found[code] = weight
    return found
