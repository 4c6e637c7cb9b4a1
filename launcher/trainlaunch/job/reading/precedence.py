"""Which value of a field counts: policy's defaults < job < target_overrides < --set.

Mappings merge, lists and scalars replace, null is the default.
"""

from __future__ import annotations

from collections.abc import Iterable

from trainlaunch.diagnostics import Diagnostic, Report, Span
from trainlaunch.job.fields.table import JOB, OVERRIDE, OVERRIDES, child
from trainlaunch.job.fields.types import Type
from trainlaunch.job.fields.unknown_keys import MAX_LISTED, nearest_name, refuse_unknown_key
from trainlaunch.job.values.value_reader import ValueReader
from trainlaunch.sanitize import shorten
from trainlaunch.targets import TARGETS
from trainlaunch.yamltree.strict import MappingNode, Node, ScalarNode, SequenceNode, parse_yaml

_NO_SETS = {
    "target_overrides": ("target_overrides", "name the field itself, as in --set shm_size=8Gi"),
    "policy": ("the policy's defaults", "name the policy by --policy FILE"),
}


def merged(base: MappingNode, over: MappingNode, type_: Type | None = JOB) -> MappingNode:
    """Return `base` with `over` laid on top. A null removes the key, unless null is a value of its own there."""
    items = dict(base.items)
    for name, (key, value) in over.items.items():
        inner = child(type_, name)
        if isinstance(value, ScalarNode) and value.null and not (inner and inner.nullable):
            items.pop(name, None)
        elif isinstance(value, MappingNode) and not (inner and inner.kind == "verbatim"):
            below = items[name][1] if name in items else None
            empty = MappingNode({}, value.span, value.kind)
            items[name] = (key, merged(below if isinstance(below, MappingNode) else empty, value, inner))
        else:
            items[name] = (key, value)
    return MappingNode(items, base.span, base.kind)


def apply_defaults(laid: MappingNode, defaults: MappingNode, type_: Type | None = JOB) -> MappingNode:
    """Return `laid` with what only `defaults` set; places and order are those of `laid`, the rest comes after."""
    items = dict(laid.items)
    for name, (key, value) in defaults.items.items():
        inner = child(type_, name)
        if name not in items:
            items[name] = (key, value)
        elif isinstance(value, MappingNode) and not (inner and inner.kind == "verbatim"):
            own_key, own = items[name]
            items[name] = (own_key, apply_defaults(own, value, inner) if isinstance(own, MappingNode) else own)
    return MappingNode(items, laid.span, laid.kind)


def with_origin(node: Node, kind: str) -> Node:
    """Return a copy of `node` that says where it came from: policy, job, target_overrides or --set."""
    if isinstance(node, ScalarNode):
        return node._replace(kind=kind)
    if isinstance(node, SequenceNode):
        return SequenceNode(tuple(with_origin(each, kind) for each in node.items), node.span, kind)
    return mapping_with_origin(node, kind)


def mapping_with_origin(node: MappingNode, kind: str) -> MappingNode:
    """Return `with_origin` of a mapping."""
    items = {name: (key, with_origin(value, kind)) for name, (key, value) in node.items.items()}
    return MappingNode(items, node.span, kind)


def apply_sets(root: MappingNode, sets: Iterable[str], report: Report) -> MappingNode:
    """Return `root` with each `dotted.path=YAML value` laid on top, in order; what can't be is put in `report`."""
    for each in sets:
        path, equals, text = each.partition("=")
        place = Span(f"--set {shorten(path)}=…" if equals else f"--set {shorten(path)}", 1, 1, 1, 1)
        if not equals or not path.strip("."):
            _refuse(
                report, place, f"--set takes field=value, not {shorten(each)}", fix="write --set resources.memory=16Gi"
            )
            continue
        before = len(report)
        value = parse_yaml(text, place.file, report)
        if value is None and len(report) == before:
            value = ScalarNode("", plain=True, span=place)  # nothing after the =: null, as YAML has it
        if value is not None:
            root = _Setter(report, place, with_origin(value, "--set"), path=path).mapping(root, path.split("."), JOB)
    return root


def _refuse(report: Report, place: Span, message: str, *, fix: str) -> None:
    report.take(Diagnostic(code="TL113", message=message, fix=fix, span=place))


class _Setter:
    """Lays one --set value at its path; an error is reported and leaves the tree as it is."""

    def __init__(self, report: Report, place: Span, value: Node, *, path: str) -> None:
        self._report = report
        self._place = place
        self._value = value
        self._path = path

    def mapping(self, node: MappingNode, parts: list[str], type_: Type) -> MappingNode:
        """Return `node` with the value at `parts` below it."""
        if type_.kind == "map" and type_.item is not None and type_.item.kind not in {"object", "list"}:
            parts = [".".join(parts)]  # labels and resources have dots in their names
        name, *rest = parts
        inner = child(type_, name)
        if name in _NO_SETS and type_ is JOB:
            said, fix = _NO_SETS[name]
            self._refuse(f"--set {shorten(self._path)} comes after {said}", fix)
            return node
        if inner is None:
            self._unknown(name, type_)
            return node
        key = ScalarNode(name, plain=True, span=self._place, kind="--set")
        if not rest:
            return merged(node, MappingNode({name: (key, self._value)}, self._place, "--set"), type_)
        below = self._below(node.items[name][1] if name in node.items else None, rest, inner)
        if below is None:
            return node
        return MappingNode({**node.items, name: (key, below)}, node.span, node.kind)

    def _below(self, node: Node | None, parts: list[str], type_: Type) -> Node | None:
        if type_.kind == "list" and type_.item is not None:
            if type_.single and isinstance(node, MappingNode):
                return self.mapping(node, parts, type_.item)
            return self._element(node, parts, type_.item)
        if type_.kind in {"object", "map"}:
            empty = MappingNode({}, self._place, "--set")
            return self.mapping(node if isinstance(node, MappingNode) else empty, parts, type_)
        self._refuse(
            f"--set {shorten(self._path)}: nothing stands below a field that takes {type_.what}",
            "name the field itself",
        )
        return None

    def _element(self, node: Node | None, parts: list[str], type_: Type) -> Node | None:
        items = list(node.items) if isinstance(node, SequenceNode) else []
        number, *rest = parts
        if not (number.isascii() and number.isdigit() and len(number) < 6 and int(number) <= len(items)):
            last = f"0 to {len(items) - 1}" if items else "none"
            self._refuse(
                f"--set {shorten(self._path)}: {shorten(number)} is not an index of that list; it has {last}",
                f"write {len(items)} to append, or set the whole list",
            )
            return None
        index = int(number)
        below = self._below(items[index] if index < len(items) else None, rest, type_) if rest else self._value
        if below is None:
            return None
        items[index : index + 1] = [below]
        if node is None:
            return SequenceNode(tuple(items), self._place, "--set")
        return SequenceNode(tuple(items), node.span, node.kind)

    def _unknown(self, name: str, type_: Type) -> None:
        known = [field.name for field in type_.fields]
        close = nearest_name(name, known, "")
        listed = ", ".join(known) if len(known) <= MAX_LISTED else "the fields of docs/job-file.md"
        fix = f"write {self._corrected(name, close)}" if close else f"write one of {listed}"
        self._refuse(f"--set {shorten(self._path)}: unknown field {shorten(name)}", fix)

    def _corrected(self, name: str, close: str) -> str:
        whole = self._path.split(".")
        at = whole.index(name)
        return close if "." in close else ".".join([*whole[:at], close, *whole[at + 1 :]])

    def _refuse(self, message: str, fix: str) -> None:
        _refuse(self._report, self._place, message, fix=fix)


def split(root: MappingNode, report: Report) -> tuple[MappingNode, dict[str, MappingNode]]:
    """Return the file without its overrides, and the overrides of each target, checked field by field."""
    items = {name: entry for name, entry in root.items.items() if name != OVERRIDES.name}
    base = MappingNode(items, root.span)
    if OVERRIDES.name not in root.items:
        return base, {}
    node = root.items[OVERRIDES.name][1]
    overrides: dict[str, MappingNode] = {}
    if not isinstance(node, MappingNode):
        ValueReader(report, partial=True).read(OVERRIDES.type, node, OVERRIDES.name)
        return base, {}
    for name, (key, value) in node.items.items():
        if name not in TARGETS:
            refuse_unknown_key(report, key, OVERRIDES.type, path=OVERRIDES.name)
        elif isinstance(value, MappingNode):
            ValueReader(report, partial=True, nulls=True).read(OVERRIDE, value, "")
            overrides[name] = mapping_with_origin(value, "target_overrides")
        else:
            ValueReader(report, partial=True).read(OVERRIDE, value, f"{OVERRIDES.name}.{name}")
    return base, overrides
