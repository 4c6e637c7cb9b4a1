"""The DataLoaders that a script makes, with what each call sets, and the name that it is assigned to."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainlaunch.script.loader_settings import stated_settings
from trainlaunch.script.program import Program
from trainlaunch.script.resolve import Scope
from trainlaunch.script.script_facts import KNOWN, UNKNOWN, UNSTATED, Loader, Value
from trainlaunch.script.source import Function, PythonSource

SETTINGS = (
    "batch_size", "num_workers", "prefetch_factor", "pin_memory", "persistent_workers", "timeout", "collate_fn",
    "batch_sampler", "multiprocessing_context",
)  # fmt: skip
_CLASS = re.compile(r"(?:^|\.)\w*DataLoader$")
_NOT_TORCHS = re.compile(r"^(?:tensorflow|jax|mxnet|mindspore|paddle|monai\.data\.Thread|nvidia\.dali)")
MAX_LOADERS = 12

_NO_NAMES = frozenset({"dl", "iter", "it", "loader", "dataloader", "data_loader", "loaders", "dataloaders"})
_AFFIXES = re.compile(r"^(?:data_?)?loaders?_|^(?:get|make|build|create)_|_?(?:data_?)?loaders?$|_dl$|_it(?:er)?$|^dl_")
_OTHER = re.compile(r"[^A-Za-z0-9]+")


def loaders_of(program: Program) -> tuple[Loader, ...]:
    """Return one Loader for each DataLoader that is alive, in the order of the text, names unique."""
    found = [loader for source, call in calls_of(program) for loader in _made(program, source, call)]
    names = unique([each.name for each in found[:MAX_LOADERS]])
    return tuple(each._replace(name=name) for each, name in zip(found, names, strict=False))


def calls_of(program: Program) -> Iterator[tuple[PythonSource, ast.Call]]:
    """Yield the calls that make a DataLoader and may run, in the order of the text."""
    return ((source, call) for source in program.sources for call in _calls(source) if program.runs(source, call))


def _calls(source: PythonSource) -> Iterator[ast.Call]:
    for node, called in source.calls:
        if _CLASS.search(called) and not _NOT_TORCHS.match(called) and (node.args or node.keywords):
            yield node


def _made(program: Program, source: PythonSource, call: ast.Call) -> Iterator[Loader]:
    """Yield the loaders of one call: one, or one for each call of the function that returns it."""
    function = source.function(call)
    scope = Scope(program, source, function)
    if function is not None and _returned(source, call, function):
        calls = program.calls.get(function.name, [])
        for site, where in calls:
            called = scope._replace(called={function: (site, where)})
            unnamed = tidy(function.name) if "loader" in function.name else "train"
            for name in _of_pair(source, call, where, site) or _of_loop(where, site) or names_of(where, site, unnamed):
                yield _loader(called, call, name)
        if calls:
            return
    for name in names_of(source, call):
        yield _loader(scope, call, name)


def _returned(source: PythonSource, call: ast.Call, function: Function) -> bool:
    """Whether a function returns just the loader that it makes."""
    parent = source.parents.get(call)
    if isinstance(parent, ast.Return):
        return True
    if isinstance(parent, ast.Tuple) and isinstance(source.parents.get(parent), ast.Return):
        return True
    named = parent.targets[0] if isinstance(parent, ast.Assign) and len(parent.targets) == 1 else None
    returned = source.returned.get(function, [])
    return (
        isinstance(named, ast.Name)
        and len(returned) == 1
        and isinstance(returned[0], ast.Name)
        and returned[0].id == named.id
    )


def _loader(scope: Scope, call: ast.Call, name: str) -> Loader:
    settings, opaque = stated_settings(scope, call)
    settings = {key: value for key, value in settings.items() if key in SETTINGS}
    if opaque:
        settings |= {
            key: Value(UNKNOWN, text=f"**{opaque}") for key in ("batch_size", "num_workers") if key not in settings
        }
    settings.setdefault("num_workers", Value(KNOWN, 0, text=UNSTATED))
    if "batch_sampler" not in settings:
        settings.setdefault("batch_size", Value(KNOWN, 1))
    return Loader(name, settings, scope.source.place(call))


def names_of(source: PythonSource, call: ast.Call, unnamed: str = "train") -> list[str]:
    """Return the names of the loaders that a call makes: more than one where a comprehension makes several.

    `unnamed` is what one is called that nothing around the call names.
    """
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
            return [tidy(outer.name) if "loader" in outer.name else unnamed]
        node = outer
    return [unnamed]


def _of_pair(source: PythonSource, call: ast.Call, where: PythonSource, site: ast.Call) -> list[str]:
    """Return what the caller unpacks a loader to that is returned among others: `train, val = loaders()`."""
    pair, target = source.parents.get(call), _only_target(where.parents.get(site))
    if not isinstance(pair, ast.Tuple) or not isinstance(target, (ast.Tuple, ast.List)):
        return []
    word = _word(target.elts[pair.elts.index(call)]) if len(target.elts) == len(pair.elts) else None
    return [tidy(word)] if word else []


def _of_loop(where: PythonSource, site: ast.Call) -> list[str]:
    """Return the words that a `for` goes over, where the call gets each of them: `for split in ("train", "val")`."""
    given = {each.id for each in (*site.args, *(each.value for each in site.keywords)) if isinstance(each, ast.Name)}
    for each in where.around(site):
        if isinstance(each, Function):
            break
        inside = each.generators[0] if isinstance(each, (ast.DictComp, ast.ListComp)) else each
        loop = inside if isinstance(inside, (ast.For, ast.comprehension)) else None
        if loop is not None and isinstance(loop.target, ast.Name) and loop.target.id in given:
            words = loop.iter.elts if isinstance(loop.iter, (ast.Tuple, ast.List)) else []
            names = [each.value for each in words if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            return [tidy(each) for each in names] if len(names) == len(words) else []
    return []


def _only_target(node: ast.AST | None) -> ast.expr | None:
    return node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None


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


def _of_comprehension(source: PythonSource, node: ast.expr) -> list[str]:
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
    if plain in _NO_NAMES:
        return "train"
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
