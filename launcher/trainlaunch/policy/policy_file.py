"""Reads one policy file: what it gives to the jobs below its folder, and what it asks of them."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from trainlaunch import __version__
from trainlaunch.diagnostics import Diagnostic, Report, Severity, Span
from trainlaunch.job.ceilings import Allowed, Ceiling, Policy, SeverityOverride
from trainlaunch.job.fields.table import JOB, child
from trainlaunch.job.fields.types import Type
from trainlaunch.job.reading.precedence import mapping_with_origin, split
from trainlaunch.job.values.scalar_reader import BAD
from trainlaunch.job.values.value_reader import ValueReader
from trainlaunch.policy.fields import DEFAULTS, OFF, OWN, POLICY_FILE, PROFILE
from trainlaunch.yamltree.strict import MappingNode, Node, ScalarNode, SequenceNode, parse_yaml

DEFAULT, PROFILED = "policy", "profile"  # kinds of an Origin
_ALLOWED = tuple(each.name for each in POLICY_FILE.fields if each.name.startswith("allowed_"))

WORD = "extend"


class Tree(NamedTuple):
    """Fields that lie beneath a job, and apart from them the items that are added to its lists."""

    bare: MappingNode
    more: MappingNode


class PolicyDefaults(NamedTuple):
    """What the defaults of a file, or one profile, give: for all targets, and on top of that by target."""

    base: Tree
    overrides: Mapping[str, Tree]

    def trees(self, target: str | None) -> tuple[Tree, ...]:
        """Return what is given to `target`, the first on top; None: what all targets get."""
        over = self.overrides.get(target or "")
        return (self.base,) if over is None else (over, self.base)


class PolicyFile(NamedTuple):
    """One policy; `extends` is the path of the one beneath it, as written."""

    path: str
    asked: Policy
    extends: ScalarNode | None
    defaults: PolicyDefaults
    profiles: Mapping[str, PolicyDefaults]


@functools.lru_cache(maxsize=64)
def read_policy(text: str, path: str) -> tuple[PolicyFile | None, tuple[Diagnostic, ...]]:
    """Return the policy of `text` and what is wrong with it; kept, since `check` asks for each rendered file."""
    report = Report()
    root = _root(text, path, report)
    if root is None:
        return None, report.found()
    items = root.items
    without = MappingNode(
        {name: each for name, each in items.items() if name not in {"defaults", "profiles"}}, root.span
    )
    values = ValueReader(report, table=POLICY_FILE).read(POLICY_FILE, without, "")
    _check_version(values.get("requires"), root, report)
    _check_required(values.get("required"), root, report)
    defaults = _gift(items["defaults"][1] if "defaults" in items else None, DEFAULT, "defaults", report)
    profiles = _profiles(items["profiles"][1] if "profiles" in items else None, report)
    if len(report) or defaults is None:
        return None, report.sorted()
    extends = items["extends"][1] if "extends" in items else None
    return (
        PolicyFile(
            path,
            _asked(path, values, without),
            extends if isinstance(extends, ScalarNode) else None,
            defaults,
            profiles,
        ),
        (),
    )


def _root(text: str, path: str, report: Report) -> MappingNode | None:
    node = parse_yaml(text, path, report)
    if node is None and len(report):
        return None
    if node is None or (isinstance(node, ScalarNode) and node.null):
        return MappingNode({}, Span(path, 1, 1, 1, 1))  # all of it commented out
    if not isinstance(node, MappingNode):
        found = "one value" if isinstance(node, ScalarNode) else "a list"
        report.add("TL105", node, message=f"the policy is {found}; expected a mapping", fix="write max: {memory: 64Gi}")
        return None
    return node


def _profiles(node: Node | None, report: Report) -> dict[str, PolicyDefaults]:
    if node is None:
        return {}
    type_ = POLICY_FILE.by_name["profiles"].type
    if not isinstance(node, MappingNode):
        ValueReader(report).read(type_, node, "profiles")
        return {}
    names = MappingNode({name: (key, MappingNode({}, key.span)) for name, (key, _) in node.items.items()}, node.span)
    ValueReader(report, partial=True).read(type_, names, "profiles")
    gifts = {name: _gift(each, PROFILED, f"profiles.{name}", report) for name, (_, each) in node.items.items()}
    return {name: each for name, each in gifts.items() if each is not None}


def _gift(node: Node | None, kind: str, path: str, report: Report) -> PolicyDefaults | None:
    """Return what stands under `defaults` or the name of a profile, None where `report` says what is wrong with it."""
    if node is None:
        empty = MappingNode({}, Span("", 1, 1, 1, 1), kind)
        return PolicyDefaults(Tree(empty, empty), {})
    type_ = DEFAULTS if kind == DEFAULT else PROFILE
    if not isinstance(node, MappingNode):
        ValueReader(report).read(type_, node, path)
        return None
    bare, more = split_extends(_givable(node, path, type_, report), type_)
    (base, overrides), (added, added_overrides) = split(bare, report), split(more, report)
    for each in (base, added):
        ValueReader(report, partial=True).read(type_, each, "")
    empty = MappingNode({}, node.span)
    made = {
        name: _tree(overrides.get(name, empty), added_overrides.get(name, empty), kind)
        for name in {**overrides, **added_overrides}
    }
    return PolicyDefaults(_tree(base, added, kind), made)


def _tree(bare: MappingNode, more: MappingNode, kind: str) -> Tree:
    return Tree(mapping_with_origin(bare, kind), mapping_with_origin(more, kind))


def _givable(node: MappingNode, path: str, type_: Type, report: Report) -> MappingNode:
    """Return `node` without the fields that no policy can give, each of which is put in `report`."""
    never = tuple(each for each in (*OWN, "profile") if each not in type_.by_name)
    for name in never:
        if name in node.items:
            report.add(
                "TL104",
                node.items[name][0],
                message=f"{path} can't give {name}; each job sets its own",
                fix=f"delete {name}",
            )
    return node._replace(items={name: each for name, each in node.items.items() if name not in never})


def _check_version(requires: object, root: MappingNode, report: Report) -> None:
    if not isinstance(requires, str):
        return
    version, own = _numbers(__version__), [each.strip() for each in requires.split(",")]
    too_old = any(_numbers(each) > version for each in own if each.startswith(">="))
    too_new = any(_numbers(each) <= version for each in own if each.startswith("<"))
    if too_old or too_new:
        older = "an older one would not know all that the policy asks, and pass what it forbids"
        newer = "a newer one may decide other sizes, and give rendered files other names"
        report.add(
            "TL151",
            root.items["requires"][1],
            message=f"the policy requires trainlaunch {requires}, and this is {__version__}",
            fix=f"install it: pip install 'trainlaunch{','.join(each.replace(' ', '') for each in own)}'",
            why=older if too_old else newer,
            field="requires",
        )


def _numbers(version: str) -> tuple[int, int, int]:
    found = [int(each) for each in re.findall(r"\d+", version)[:3]]
    first, second, third = (*found, 0, 0, 0)[:3]
    return first, second, third


def _check_required(fields: object, root: MappingNode, report: Report) -> None:
    """Put each name in `report` that is no field's."""
    node = root.items["required"][1] if "required" in root.items else None
    for index, name in enumerate(fields if isinstance(fields, tuple) else ()):
        type_: Type | None = JOB
        for part in name.split(".") if name is not BAD else ():
            type_ = child(type_, part)
        if type_ is None and isinstance(node, SequenceNode):
            report.add(
                "TL107",
                node.items[index],
                message=f"required.{index} is {name}, which is no field of a job file",
                fix="write a field of docs/job-file.md, like active_deadline or resources.cpus",
                field="required",
            )


def _asked(path: str, values: Mapping[str, Any], root: MappingNode) -> Policy:
    """Return what one file asks; its place among others, and whether an option named it, are said later."""
    labels: Mapping[str, str] = values.get("required_labels", {})
    weights: Mapping[str, str] = values.get("severities", {})
    layout: Mapping[str, Any] = values.get("render", {})
    return Policy(
        files=(path,),
        option=None,
        fixed=frozenset(),
        max={name: Ceiling(each, _span(root, "max", name)) for name, each in values.get("max", {}).items()},
        allowed=_allowed(values, root),
        required=tuple((name, _span(root, "required", name)) for name in values.get("required", ())),
        required_labels=tuple((name, each, _span(root, "required_labels", name)) for name, each in labels.items()),
        severities={
            code: SeverityOverride(None if each == OFF else Severity(each), _span(root, "severities", code))
            for code, each in weights.items()
        },
        digest_span=_span(root, "require_digest") if values.get("require_digest") else None,
        token_span=_span(root, "forbid_token") if values.get("forbid_token") else None,
        render_path=(layout["path"], _span(root, "render", "path")) if "path" in layout else None,
        render_targets=layout.get("targets", ()),
        shm_share=Fraction(values["shm_share"]) if "shm_share" in values else None,
    )


def _allowed(values: Mapping[str, Any], root: MappingNode) -> dict[str, tuple[Allowed, ...]]:
    """Return a file's lists; a limit on GPUs without a list of other resources is one that allows none."""
    stated = [name for name in _ALLOWED if name in values]
    lists: dict[str, tuple[Allowed, ...]] = {name: (Allowed(values[name], _span(root, name)),) for name in stated}
    ceiling = next((name for name in ("gpus", "total_gpus") if name in values.get("max", {})), None)
    if ceiling and "allowed_extended" not in lists:
        lists["allowed_extended"] = (Allowed((), _span(root, "max", ceiling)),)
    return lists


def _span(node: Node, *names: str) -> Span:
    for name in names:
        if isinstance(node, MappingNode):
            node = node.items[name][1]
        elif isinstance(node, SequenceNode):
            node = next((each for each in node.items if isinstance(each, ScalarNode) and each.text == name), node)
    return node.span


def split_extends(tree: MappingNode, type_: Type | None) -> tuple[MappingNode, MappingNode]:
    """Return `tree` without what it adds to lists, and that alone, as lists at their places."""
    bare: dict[str, tuple[ScalarNode, Node]] = {}
    more: dict[str, tuple[ScalarNode, Node]] = {}
    for name, (key, value) in tree.items.items():
        inner = child(type_, name)
        if not isinstance(value, MappingNode):
            bare[name] = (key, value)
        elif inner is not None and inner.kind == "list" and list(value.items) == [WORD]:
            more[name] = (key, value.items[WORD][1])
        else:
            rest, added = split_extends(value, inner)
            if rest.items or not added.items:
                bare[name] = (key, rest)
            if added.items:
                more[name] = (key, added)
    return MappingNode(bare, tree.span, tree.kind), MappingNode(more, tree.span, tree.kind)


def extended(laid: MappingNode, more: MappingNode) -> MappingNode:
    """Return `laid` with the items of `more`'s lists behind its own; what a list has already isn't added again."""
    items = dict(laid.items)
    for name, (key, value) in more.items.items():
        own_key, own = items.get(name, (key, None))
        if isinstance(value, MappingNode):
            below = MappingNode({}, value.span, value.kind) if own is None else own
            if isinstance(below, MappingNode):  # else the job says in one word that there is none
                items[name] = (own_key, extended(below, value))
        elif own is None:
            items[name] = (key, value)
        elif isinstance(own, SequenceNode) and isinstance(value, SequenceNode):
            had = [_content(each) for each in own.items]
            new = tuple(each for each in value.items if _content(each) not in had)
            items[name] = (own_key, own._replace(items=(*own.items, *new)))
    return MappingNode(items, laid.span, laid.kind)


def _content(node: Node) -> object:
    """Return what a node says, wherever it stands."""
    if isinstance(node, ScalarNode):
        return node.text, node.null
    if isinstance(node, SequenceNode):
        return [_content(each) for each in node.items]
    return {name: _content(value) for name, (_, value) in node.items.items()}
