"""The name of a loader, from what its call is assigned to."""

from __future__ import annotations

import ast
import re

from trainlaunch.init.source import Function, Source

_AFFIXES = re.compile(r"^(?:data_?)?loaders?_|^(?:get|make|build|create)_|_?(?:data_?)?loaders?$|_dl$|_it(?:er)?$|^dl_")
_OTHER = re.compile(r"[^A-Za-z0-9]+")


def names_of(source: Source, call: ast.Call) -> list[str]:
    """Return the names of the loaders that a call makes: more than one where a comprehension makes several."""
    node: ast.AST = call
    index: int | None = None
    for outer in source.around(call):
        if isinstance(outer, (ast.GeneratorExp, ast.ListComp)):
            return _of_comprehension(source, outer)
        if isinstance(outer, ast.DictComp):
            keys = [each.value for each in ast.walk(outer.generators[0].iter) if isinstance(each, ast.Constant)]
            return [tidy(str(key)) for key in keys] or ["train"]
        if isinstance(outer, ast.Tuple):
            index = next(place for place, each in enumerate(outer.elts) if each is node)
        if isinstance(outer, ast.Call):  # `a, b = accelerator.prepare(DataLoader(…), DataLoader(…))`
            index = next((place for place, each in enumerate(outer.args) if each is node), None)
        name = _name_beside(node, outer, index)
        if name is not None:
            return [tidy(name)]
        if isinstance(outer, (Function, ast.ClassDef)):
            return [tidy(outer.name) if "loader" in outer.name else "train"]
        node = outer
    return ["train"]


def _name_beside(node: ast.AST, outer: ast.AST, index: int | None) -> str | None:
    """Return what `outer` calls the value `node`, its element `index` of a tuple; None where it gives no name."""
    if isinstance(outer, ast.Dict) and node in outer.values:
        key = outer.keys[outer.values.index(node)] if isinstance(node, ast.expr) else None
        return str(key.value) if isinstance(key, ast.Constant) else None
    if isinstance(outer, ast.keyword) and outer.arg and "loader" in outer.arg:
        return outer.arg
    if not isinstance(outer, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
        return None
    target = outer.targets[0] if isinstance(outer, ast.Assign) else outer.target
    if isinstance(target, (ast.Tuple, ast.List)):
        return _word(target.elts[index]) if index is not None and index < len(target.elts) else None
    return _word(target)


def _of_comprehension(source: Source, node: ast.expr) -> list[str]:
    parent = source.parents.get(node)
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    if isinstance(target, (ast.Tuple, ast.List)):
        return [tidy(_word(each) or "") for each in target.elts]
    return ["train"]


def _word(node: ast.AST | None) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return None


def tidy(name: str) -> str:
    """Return a loader's name without the words that every loader has: `self.train_dataloader` is train."""
    plain = name.strip("_").lower()
    for _ in range(2):
        plain = _AFFIXES.sub("", plain)
    return _OTHER.sub("_", plain).strip("_")[:40] or "train"


def unique(names: list[str]) -> list[str]:
    """Return the names with a number where one stands twice."""
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
    count: dict[str, int] = {}
    result = []
    for name in names:
        count[name] = count.get(name, 0) + 1
        result.append(name if seen[name] == 1 or count[name] == 1 else f"{name}_{count[name]}")
    return result
