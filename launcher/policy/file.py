"""The policy of a job: `trainlaunch-policy.yaml`, found upward from the job file, or the file that the job names.

Its defaults lie beneath all that a job states; its ceilings and demands are checked against the plan, after everything
else, so that nothing of a job gets past them.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from launcher.diagnostics import Diagnostic, Report, Span
from launcher.job.building.merge import beneath, mapping_of_kind
from launcher.job.building.overrides import split
from launcher.job.ceilings import Limit, Policy
from launcher.job.values.reader import ValueReader
from launcher.policy.fields import DEFAULTS, OWN, POLICY_FILE
from launcher.policy.search import find_policy
from launcher.yamltree.source import MappingNode, Node, Scalar, SequenceNode, parse_yaml
from launcher.yamltree.text_file import read_text

KIND = "policy"  # of an Origin
NOUN = "policy"


class PolicyFile(NamedTuple):
    """A policy with the trees of its defaults: for all targets, and on top of them those of one target each."""

    policy: Policy
    defaults: MappingNode
    overrides: Mapping[str, MappingNode]

    def beneath(self, laid: MappingNode, target: str | None = None) -> MappingNode:
        """Return a job's tree with the defaults for `target` beneath it; None: those for all targets."""
        defaults = self.defaults
        if target is not None and target in self.overrides:
            defaults = beneath(self.overrides[target], defaults)
        return beneath(laid, _without_alternatives(defaults, laid))

    def of(self, laid: MappingNode) -> Policy:
        """Return the policy with what it gives to a job, whose tree with the defaults beneath is `laid`."""
        return self.policy._replace(given=tuple(_given(laid)))


def policy_of(job_file: Path, root: MappingNode, asked: Path | None, report: Report) -> PolicyFile | None:
    """Return the policy of a job: `asked`, else the one that the job names, else the nearest upward; None: none.

    What is wrong with it is put in `report`.
    """
    node = root.items["policy"][1] if "policy" in root.items else None
    stated = node if isinstance(node, Scalar) and not node.null else None
    if stated is not None:
        otherwise: Path | None = Path(os.path.normpath(job_file.parent / stated.text))
    else:
        otherwise = find_policy(job_file, Report() if asked else report)
    path = asked or otherwise
    if path is None:
        return None
    own = Report()
    text = read_text(path, own, NOUN)
    option = asked is not None and not (otherwise and os.path.realpath(asked) == os.path.realpath(otherwise))
    file, found = (None, ()) if text is None else _read(text, str(path))
    for each in (*own.found(), *found):
        report.take(each._replace(span=stated.span) if stated and not asked and not each.span else each)
    if file is None:
        return None
    spelled = str(path) if option else stated.text if stated else ""
    return file._replace(policy=file.policy._replace(option=option, fixed=spelled.startswith("/")))


@functools.lru_cache(maxsize=8)
def _read(text: str, path: str) -> tuple[PolicyFile | None, tuple[Diagnostic, ...]]:
    """Return the policy of `text` and what is wrong with it; kept, since `check` asks for each rendering."""
    report = Report()
    node = parse_yaml(text, path, report)
    if node is None and len(report):
        return None, report.found()
    if node is None or (isinstance(node, Scalar) and node.null):
        node = MappingNode({}, Span(path, 1, 1, 1, 1))  # all of it commented out
    if not isinstance(node, MappingNode):
        found = "one value" if isinstance(node, Scalar) else "a list"
        report.add("TL105", node, message=f"the policy is {found}; expected a mapping", fix="write max: {memory: 64Gi}")
        return None, report.found()
    items = node.items
    defaults = items["defaults"][1] if "defaults" in items else MappingNode({}, node.span)
    without = MappingNode({name: entry for name, entry in items.items() if name != "defaults"}, node.span)
    values = ValueReader(report, table=POLICY_FILE).read(POLICY_FILE, without, "")
    if not isinstance(defaults, MappingNode):
        ValueReader(report).read(DEFAULTS, defaults, "defaults")
        return None, report.found()
    base, overrides = split(_givable(defaults, report), report)
    ValueReader(report, partial=True).read(DEFAULTS, base, "")
    if len(report):
        return None, report.found()
    trees = {name: mapping_of_kind(each, KIND) for name, each in overrides.items()}
    return PolicyFile(_policy(path, values, without), mapping_of_kind(base, KIND), trees), ()


def _givable(defaults: MappingNode, report: Report) -> MappingNode:
    """Return `defaults` without the fields that no policy can give, each of which is put in `report`."""
    for name in OWN:
        if name in defaults.items:
            report.add(
                "TL104",
                defaults.items[name][0],
                message=f"defaults can't give {name}; each job states its own",
                fix=f"delete {name}",
            )
    return defaults._replace(items={name: each for name, each in defaults.items.items() if name not in OWN})


def _policy(path: str, values: Mapping[str, Any], root: MappingNode) -> Policy:
    ceilings: Mapping[str, int] = values.get("max", {})
    labels: Mapping[str, str] = values.get("required_labels", {})
    registries: tuple[str, ...] = values.get("allowed_registries", ())
    return Policy(
        path=path,
        option=False,
        fixed=False,
        max={name: Limit(value, _below(root, "max", name).span) for name, value in ceilings.items()},
        required_labels=tuple(
            (name, pattern, _below(root, "required_labels", name).span) for name, pattern in labels.items()
        ),
        allowed_registries=registries,
        registries_span=_below(root, "allowed_registries").span if registries else None,
        digest_span=_below(root, "require_digest").span if values.get("require_digest") else None,
    )


def _below(node: Node, *names: str) -> Node:
    for name in names:
        if isinstance(node, MappingNode):
            node = node.items[name][1]
        elif isinstance(node, SequenceNode):
            node = next((each for each in node.items if isinstance(each, Scalar) and each.text == name), node)
    return node


_ALTERNATIVES = (("command", "script"), ("sample", "batch_bytes"))


def _without_alternatives(defaults: MappingNode, laid: MappingNode) -> MappingNode:
    """Return `defaults` without what `laid` states in another way: only one of two may stand in a job."""
    items = dict(defaults.items)
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
    return MappingNode(items, defaults.span, defaults.kind)


def _given(node: MappingNode, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each value below `node` that is the policy's: scalars and whole lists."""
    for name, (_, value) in node.items.items():
        if isinstance(value, MappingNode):
            yield from _given(value, f"{path}{name}.")
        elif value.kind == KIND:
            yield path + name, _spelled(value)


def _spelled(node: Node) -> str:
    if isinstance(node, Scalar):
        return node.text if node.text.isprintable() else ascii(node.text)
    if isinstance(node, SequenceNode):
        return f"[{', '.join(map(_spelled, node.items))}]"
    return f"{{{', '.join(f'{name}: {_spelled(value)}' for name, (_, value) in node.items.items())}}}"
