"""Which policies are in force for a job: what they ask together, the strictest of each, and what lies beneath it.

Profiles lie under what a job sets, defaults under both.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from trainlaunch.diagnostics import SEVERITIES, Report, Span
from trainlaunch.job.ceilings import Allowed, Ceiling, Policy, PolicyValue, SeverityOverride
from trainlaunch.job.reading.precedence import apply_defaults
from trainlaunch.policy.policy_file import DEFAULT, PROFILED, PolicyFile, extended, read_policy
from trainlaunch.repository.root import Reach, outside
from trainlaunch.sanitize import shorten
from trainlaunch.yamltree.strict import MappingNode, Node, ScalarNode, SequenceNode
from trainlaunch.yamltree.text_file import read_text

NOUN = "policy"
_STRICTNESS = (None, *SEVERITIES)

_ALTERNATIVES = (("command", "script"), ("sample", "batch_bytes"))


def policies_of(
    job_file: Path, root: MappingNode, asked: Path | None, found: list[Path], reach: Reach, report: Report
) -> PolicyLayer | None:
    """Return the policies of a job: `asked` alone, else the one that it names over those `found` upward; None: none.

    Each brings those that it extends. What is wrong with them is put in `report`, and so is what lies out of `reach`.
    """
    node = root.items["policy"][1] if "policy" in root.items else None
    # No path holds U+0000, which the job's reader says.
    stated = node if isinstance(node, ScalarNode) and not node.null and "\0" not in node.text else None
    named = [Path(os.path.normpath(job_file.parent / stated.text))] if stated else []
    if stated and asked is None and not reach.holds(named[0], job_file):
        report.take(
            outside(
                job_file,
                f"policy: {shorten(stated.text)}",
                reach,
                f"move it into the repository, or add `--policy {named[0]}` if you trust it",
                stated.span,
            )
        )
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
                self._report.take(
                    outside(
                        above_it,
                        f"extends: {shorten(text)}",
                        self._reach,
                        f"add `--allow-outside {path.parent}`, or move it into the repository",
                        span,
                    )
                )
                return
            if Path(text).is_absolute():
                self.fixed |= {str(path)}
            if os.path.realpath(path) in above:
                self._report.add(
                    "TL107",
                    file.extends,
                    message=f"the policy extends {text}, which leads back to it",
                    fix="delete extends in one of them",
                    field="extends",
                )
                return

    def _read(self, path: Path, span: Span | None) -> PolicyFile | None:
        own = Report()
        text = read_text(path, own, NOUN)
        file, wrong = (None, ()) if text is None else read_policy(text, str(path))
        for each in (*own.found(), *wrong):
            self._report.take(each if each.span else each._replace(span=span))
        return file


def strictest(asked: Iterable[Policy]) -> Policy:
    """Return what all of them ask together: the lowest limit, every list and demand, the higher severity."""
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
        shm_share=min((one.shm_share for one in each if one.shm_share), default=None),
    )


def _lowest(limits: Iterable[tuple[str, Ceiling]]) -> dict[str, Ceiling]:
    found: dict[str, Ceiling] = {}
    for name, limit in limits:
        if name not in found or limit.value < found[name].value:
            found[name] = limit
    return found


def _all_lists(lists: Iterable[tuple[str, tuple[Allowed, ...]]]) -> dict[str, tuple[Allowed, ...]]:
    found: dict[str, tuple[Allowed, ...]] = {}
    for name, allowed in lists:
        found[name] = (*found.get(name, ()), *allowed)
    return found


def _strictest_weights(weights: Iterator[tuple[str, SeverityOverride]]) -> dict[str, SeverityOverride]:
    found: dict[str, SeverityOverride] = {}
    for code, weight in weights:
        known = found.get(code)
        if known is None or _STRICTNESS.index(weight.severity) > _STRICTNESS.index(known.severity):
            found[code] = weight
    return found


class PolicyLayer(NamedTuple):
    """Policy files, the nearest first, and what all of them ask together."""

    files: tuple[PolicyFile, ...]
    asked: Policy

    @property
    def profiles(self) -> dict[str, str]:
        """The names of all profiles, each with the nearest file that has it."""
        return {name: each.path for each in reversed(self.files) for name in each.profiles}

    def apply_defaults(self, laid: MappingNode, target: str | None = None) -> MappingNode:
        """Return a job's tree with all that is given to `target` beneath it; None: what all targets get."""
        defaults = [tree for each in self.files for tree in each.defaults.trees(target)]
        name = _profile((laid, *(each.bare for each in defaults)))
        profiles = [each.profiles[name] for each in self.files if name is not None and name in each.profiles]
        trees = [*(tree for each in profiles for tree in each.trees(target)), *defaults]
        for tree in trees:
            laid = apply_defaults(laid, _without_alternatives(tree.bare, laid))
        for tree in trees:
            laid = extended(laid, tree.more)
        return laid

    def trees(self) -> Iterator[MappingNode]:
        """Yield all that is given to any job, for any target."""
        for each in self.files:
            for gift in (each.defaults, *each.profiles.values()):
                yield from (tree.bare for tree in (gift.base, *gift.overrides.values()))

    def constraints_for(self, laid: MappingNode) -> Policy:
        """Return what is asked, with what is given to a job, whose tree with that beneath it is `laid`."""
        return self.asked._replace(given=tuple(_given(laid, _profile((laid,)))))


def _profile(trees: tuple[MappingNode, ...]) -> str | None:
    """Return the profile that the first of the trees with one asks for."""
    for each in trees:
        node = each.items["profile"][1] if "profile" in each.items else None
        if isinstance(node, ScalarNode) and not node.null:
            return node.text
    return None


def _without_alternatives(given: MappingNode, laid: MappingNode) -> MappingNode:
    """Return `given` without what `laid` sets in another way: only one of two may stand in a job."""
    items = dict(given.items)
    for pair in _ALTERNATIVES:
        if any(name in laid.items for name in pair):
            for name in pair:
                items.pop(name, None)
    for name, other in (("env", "secrets"), ("secrets", "env")):
        mine, theirs = items.get(name), laid.items.get(other)
        if mine and theirs and isinstance(mine[1], MappingNode) and isinstance(theirs[1], MappingNode):
            left = {each: entry for each, entry in mine[1].items.items() if each not in theirs[1].items}
            items[name] = (mine[0], mine[1]._replace(items=left))
    mine, theirs = items.get("data_loader"), laid.items.get("data_loader")
    if mine and theirs and isinstance(mine[1], MappingNode) and isinstance(theirs[1], MappingNode):
        items["data_loader"] = (mine[0], _without_alternatives(mine[1], theirs[1]))
    return MappingNode(items, given.span, given.kind)


def _given(node: MappingNode, profile: str | None, path: str = "") -> Iterator[PolicyValue]:
    """Yield each value below `node` that a policy gave: scalars, whole lists, and what was added to others."""
    for name, (_, value) in node.items.items():
        if isinstance(value, MappingNode):
            yield from _given(value, profile, f"{path}{name}.")
            continue
        added = value.items if isinstance(value, SequenceNode) and value.kind not in {DEFAULT, PROFILED} else None
        parts: list[Node] = [value] if added is None else list(added)
        for kind, span in dict.fromkeys((each.kind, _of_file(each.span)) for each in parts):
            if kind in {DEFAULT, PROFILED}:
                own = [each for each in parts if (each.kind, _of_file(each.span)) == (kind, span)]
                said = _spelled(value) if added is None else f"+ [{', '.join(map(_spelled, own))}]"
                yield PolicyValue(path + name, said, span.file, profile if kind == PROFILED else None)


def _of_file(span: Span) -> Span:
    return Span(span.file, 1, 1, 1, 1)


def _spelled(node: Node) -> str:
    if isinstance(node, ScalarNode):
        return node.text if node.text.isprintable() else ascii(node.text)
    if isinstance(node, SequenceNode):
        return f"[{', '.join(map(_spelled, node.items))}]"
    return f"{{{', '.join(f'{name}: {_spelled(value)}' for name, (_, value) in node.items.items())}}}"
