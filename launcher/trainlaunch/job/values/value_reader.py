"""Reads nodes into typed values by the table of fields, and says what is wrong with those that can't be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from typing import Any

from trainlaunch.diagnostics import Report
from trainlaunch.gpu_names import ALL_GPUS
from trainlaunch.job.fields.types import Field, Type, listing, mapping, record, text
from trainlaunch.job.fields.unknown_keys import refuse_unknown_key
from trainlaunch.job.spec import Gpus
from trainlaunch.job.values.scalar_reader import BAD, ScalarReader, article_of, plain_value, quoted
from trainlaunch.yamltree.strict import MappingNode, Node, ScalarNode, SequenceNode

_GPU_ID = r"[0-9]{1,4}|(?:GPU|MIG)-[-0-9a-zA-Z/]+"


class ValueReader:
    """Reads a tree by its type. A value that can't be read is BAD in the result, and said in the report.

    `partial` reads half a job (the file without its overrides, or one override): nothing is required; `nulls` lets null
    stand for a field's default, as overrides do. `table` is the file's whole type, where misplaced keys are looked up.
    `optional` are the dotted fields that need not be set though they are required elsewhere.
    """

    def __init__(
        self,
        report: Report,
        *,
        partial: bool = False,
        nulls: bool = False,
        table: Type | None = None,
        optional: Set[str] = frozenset(),
    ) -> None:
        self._report = report
        self._table = table
        self._partial = partial
        self._nulls = nulls
        self._optional = optional
        self._scalars = ScalarReader(report)
        self.misspelt: set[str] = set()  # dotted fields that an unknown key was taken for: one error says both

    def read(self, type_: Type, node: Node, path: str) -> Any:
        """Return the value of `node`: dicts of what is set, tuples for lists, scalars as `Type` says."""
        if isinstance(node, ScalarNode) and node.null and type_.kind != "any":
            return None if type_.nullable else self._null(type_, node, path)
        reader = _READERS.get(type_.kind)
        if reader is not None:
            return reader(self, type_, node, path)
        if not isinstance(node, ScalarNode):
            return self._wrong(type_, node, path)
        return self._scalars.read(type_, node, path)

    def _null(self, type_: Type, node: Node, path: str) -> object:
        empty = {"map": "{}", "object": "{}", "list": "[]"}.get(type_.kind)
        if type_.auto:
            fix = "write auto, or delete the line"
        elif empty:
            fix = f"write {empty}, or delete the line"
        else:
            string = ' ("" for an empty string)' if type_.kind == "text" and not type_.pattern else ""
            fix = f"write a value{string}, or delete the line"
        message = f"{path} has no value; expected {article_of(type_)}"
        return self._refuse(
            node, path, message, why="null means the default only in target_overrides and --set", fix=fix
        )

    def _wrong(self, type_: Type, node: Node, path: str) -> object:
        from trainlaunch.job.values.shapes import fix_shape  # only on the way to an error

        found = {ScalarNode: "one value", MappingNode: "a mapping", SequenceNode: "a list"}[type(node)]
        return self._refuse(
            node, path, f"{path} is {found}; expected {article_of(type_)}", fix=fix_shape(type_, node, path)
        )

    def _refuse(self, node: Node, path: str, message: str, *, fix: str, why: str = "", code: str = "TL105") -> Any:
        self._report.add(code, node, message=message, fix=fix, why=why, field=path)
        return BAD

    def _object(self, type_: Type, node: Node, path: str) -> Any:
        if isinstance(node, ScalarNode) and node.text in type_.instead:
            return dict(type_.instead[node.text])
        if not isinstance(node, MappingNode):
            return self._wrong(type_, node, path)
        values: dict[str, Any] = {}
        meant: set[str | None] = set()
        for name, (key, value) in node.items.items():
            field = type_.by_name.get(name)
            if field is None:
                meant.add(refuse_unknown_key(self._report, key, type_, path=path, table=self._table))
            elif not (self._nulls and isinstance(value, ScalarNode) and value.null and not field.type.nullable):
                values[name] = self.read(field.type, value, f"{path}.{name}" if path else name)
        if not self._partial:
            self._require(type_, node, path, stated=values.keys() | meant)
        self.misspelt |= {f"{path}.{each}" if path else each for each in meant if each}
        return values

    def _require(self, type_: Type, node: MappingNode, path: str, *, stated: Set[str | None]) -> None:
        for field in type_.fields:
            if field.required and field.name not in stated:
                full = f"{path}.{field.name}" if path else field.name
                if full in self._optional:
                    continue
                self._report.add(
                    "TL106", node, message=f"{full} is missing", fix=f"add {field.name}: {field.example}", field=full
                )

    def _map(self, type_: Type, node: Node, path: str) -> Any:
        if not isinstance(node, MappingNode):
            return self._wrong(type_, node, path)
        pattern, words = type_.keys
        values: dict[str, Any] = {}
        for name, (key, value) in node.items.items():
            if not re.fullmatch(pattern, name):
                self._report.add(
                    "TL107",
                    key,
                    message=f"{path} has the key {quoted(name)}; it takes {words}",
                    fix="rename the key",
                    field=path,
                )
            elif not (self._nulls and isinstance(value, ScalarNode) and value.null):
                values[name] = self.read(type_.inner, value, f"{path}.{name}")
        if len(node.items) < (type_.low or 0):
            self._too_few(node, path)
        return values

    def _too_few(self, node: Node, path: str) -> None:
        self._report.add("TL107", node, message=f"{path} is empty", fix=f"add a value, or delete {path}", field=path)

    def _list(self, type_: Type, node: Node, path: str) -> Any:
        if type_.single and isinstance(node, MappingNode):
            return (self.read(type_.inner, node, path),)
        if not isinstance(node, SequenceNode):
            return self._wrong(type_, node, path)
        if len(node.items) < (type_.low or 0):
            self._too_few(node, path)
        inner = ValueReader(self._report)  # a list replaces as a whole: its items are never partial
        return tuple(inner.read(type_.inner, each, f"{path}.{index}") for index, each in enumerate(node.items))

    def _labels(self, type_: Type, node: Node, path: str) -> Any:
        """Return patterns by label; a list of names asks for any value that is not empty."""
        from trainlaunch.job.values.patterns import ANY_VALUE, pattern_problem  # only policies have them

        if isinstance(node, SequenceNode):
            names = self.read(listing(text("a label's name", r"\S+"), low=1), node, path)
            return {name: ANY_VALUE for name in names if name is not BAD}
        patterns = self.read(mapping(text("a regular expression"), r"\S+", "a label's name", low=1), node, path)
        if not isinstance(node, MappingNode):
            return patterns
        for name, pattern in patterns.items():
            problem = None if pattern is BAD else pattern_problem(pattern)
            if problem is not None:
                self._report.add(
                    "TL107", node.items[name][1], message=f"{path}.{name} {problem.said}", fix=problem.fix, field=path
                )
        return patterns

    def _verbatim(self, type_: Type, node: Node, path: str) -> Any:
        if not type_.nullable and not isinstance(node, MappingNode):
            return self._wrong(type_, node, path)
        return plain_value(node, path, self._report)

    def _gpus(self, type_: Type, node: Node, path: str) -> Any:
        if isinstance(node, SequenceNode):
            return self._gpu_ids(node, path)
        if not isinstance(node, ScalarNode):
            return self._wrong(type_, node, path)
        if node.text == ALL_GPUS:
            return Gpus(count=0, ids=(), all=True)
        listed = re.fullmatch(rf"(?:device=)?((?:{_GPU_ID})(?:, ?(?:{_GPU_ID}))*)", node.text)
        if listed and ("," in node.text or not node.text.isdecimal()):
            self._report.add(
                "TL105",
                node,
                message=f"{path} is one value; expected {type_.what}",
                fix=f"write [{', '.join(re.findall('[^, ]+', listed[1]))}]",
                field=path,
            )
            return BAD
        count = self._scalars.read(Type("int", type_.what, low=type_.low, high=type_.high), node, path)
        return count if count is BAD else Gpus(count=count, ids=(), all=False)

    def _gpu_ids(self, node: SequenceNode, path: str) -> Any:
        ids: list[str] = []
        for index, each in enumerate(node.items):
            if not isinstance(each, ScalarNode) or not re.fullmatch(_GPU_ID, each.text):
                self._refuse(
                    each,
                    path,
                    f"{path}.{index} is no GPU id",
                    fix="write an index, like 0, or a GPU-… or MIG-… id",
                    code="TL107",
                )
            elif each.text in ids:
                self._refuse(
                    each, path, f"{path} names the GPU {each.text} twice", fix=f"delete one {each.text}", code="TL107"
                )
            else:
                ids.append(each.text)
        if not node.items:
            self._refuse(node, path, f"{path} names no GPU", fix="write 0, or delete the line", code="TL107")
        return Gpus(count=len(ids), ids=tuple(ids), all=False) if len(ids) == len(node.items) > 0 else BAD

    def _ulimit(self, type_: Type, node: Node, path: str) -> Any:
        number = Type("int", type_.what, low=type_.low, high=type_.high)
        if isinstance(node, ScalarNode) and node.text in {"unlimited", "infinity"}:
            return self._refuse(node, path, f"{path} is {node.text}; expected {type_.what}", fix="write -1")
        if isinstance(node, ScalarNode):
            value = self._scalars.read(number, node, path)
            return value if value is BAD else (value, value)
        fields = tuple(
            Field(name, number, f"the {name} limit", required=True, example="65536") for name in ("soft", "hard")
        )
        both = record(*fields)._replace(what=type_.what)
        found = ValueReader(self._report).read(both, node, path)
        if found is BAD or BAD in found.values() or len(found) < 2:
            return BAD
        soft, hard = found["soft"], found["hard"]
        if hard != -1 and (soft == -1 or soft > hard):
            message = f"{path}.soft {soft} is above {path}.hard {hard}"
            return self._refuse(node, path, message, fix=f"set {path}.soft to {hard}", code="TL107")
        return soft, hard


_READERS: Mapping[str, Callable[[ValueReader, Type, Node, str], Any]] = {
    "object": ValueReader._object,
    "map": ValueReader._map,
    "list": ValueReader._list,
    "gpus": ValueReader._gpus,
    "ulimit": ValueReader._ulimit,
    "labels": ValueReader._labels,
    "verbatim": ValueReader._verbatim,
    "any": lambda _reader, _type, _node, _path: BAD,
}
