"""Where a script's loaders go: every loop over one, or the first place behind which nobody can follow them."""

from __future__ import annotations

import ast

from trainlaunch.script.callees import Callee, Callees, Site, owner_of
from trainlaunch.script.source import Function, PythonSource

_DATA_LOADERS = frozenset({"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"})
_READ = frozenset({
    "batch_sampler", "batch_size", "collate_fn", "dataset", "drop_last", "num_workers", "pin_memory", "sampler",
})  # fmt: skip
_LOOKS = frozenset({"isinstance", "len", "print", "type"})
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_Places = frozenset[int]
_LOADER: _Places | None = (
    None  # a value is a loader, or it holds loaders: at these places, anywhere where it names none
)
_SOMEWHERE: _Places = frozenset()


class Unproved(Exception):
    """What is asked of the loops can't be shown: `site` is where, `words` what stands there."""

    def __init__(self, site: Site, words: str) -> None:
        super().__init__(words)
        self.site = site
        self.words = words


def loops_over(callees: Callees, made: list[Site]) -> tuple[Site, ...]:
    """Return the `for` statements and comprehensions that go over the loaders `made`. Raises Unproved."""
    flow = _Flow(callees)
    for site in made:
        if isinstance(site.node, ast.Call) and site.source.dotted(site.node.func) not in _DATA_LOADERS:
            raise Unproved(site, "makes a loader of a class of its own")
        flow.follow(site, _LOADER)
    return tuple(flow.loops.values())


class _Flow:
    def __init__(self, callees: Callees) -> None:
        self.callees = callees
        self.loops: dict[ast.AST, Site] = {}
        self.seen: set[tuple[object, ...]] = set()
        nodes = [each.node for each in callees.nodes]
        self.declared = {name for each in nodes if isinstance(each, (ast.Global, ast.Nonlocal)) for name in each.names}
        self.from_modules = [(each, taken) for each in callees.nodes if (taken := _taken_of_module(each))]

    def _first_time(self, *what: object) -> bool:
        new = what not in self.seen
        self.seen.add(what)
        return new

    def follow(self, site: Site, held: _Places | None) -> None:
        """Go on from an expression whose value is a loader, or holds some."""
        source, node = site
        parent = source.parents[node]
        if not self._first_time(node, held) or _looks_only(parent, node, held):
            return
        if isinstance(parent, (ast.Assign, ast.AnnAssign)):
            for target in parent.targets if isinstance(parent, ast.Assign) else [parent.target]:
                self._bind(Site(source, target), held)
        elif isinstance(parent, ast.IfExp):
            self.follow(Site(source, parent), held)
        elif held is None and isinstance(parent, (ast.Tuple, ast.List)):
            at = next(index for index, each in enumerate(parent.elts) if each is node)
            self.follow(Site(source, parent), frozenset({at}))
        elif held is None and isinstance(parent, (ast.Dict, ast.DictComp, ast.ListComp, ast.GeneratorExp)):
            self.follow(Site(source, parent), _SOMEWHERE)
        elif held is not None and isinstance(parent, ast.Subscript) and parent.value is node:
            self.follow(Site(source, parent), _LOADER)
        elif isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is node:
            self._loop(site, parent, held)
        elif isinstance(parent, ast.Return):
            self._returned(site, held)
        else:
            self._handed(site, held)

    def _handed(self, site: Site, held: _Places | None) -> None:
        source, node = site
        parent = source.parents[node]
        call = source.parents[parent] if isinstance(parent, ast.keyword) else parent
        if isinstance(call, ast.Call) and isinstance(parent, ast.keyword) and parent.arg:
            self._argument(site, call, parent.arg, held)
        elif isinstance(call, ast.Call) and call.func is not node and isinstance(node, ast.expr) and node in call.args:
            self._argument(site, call, call.args.index(node), held)
        else:
            raise Unproved(site, "does with a loader what can't be followed")

    def _loop(self, site: Site, loop: ast.For | ast.comprehension, held: _Places | None) -> None:
        if held is not None:
            self._bind(Site(site.source, loop.target), _LOADER)
            return
        whole = site.source.parents[loop] if isinstance(loop, ast.comprehension) else loop
        if isinstance(loop, ast.comprehension) and (loop.is_async or not _is_first(whole, loop)):
            raise Unproved(site, "starts a loader anew inside a comprehension")
        self.loops[whole] = Site(site.source, whole)

    def _bind(self, target: Site, held: _Places | None) -> None:
        source, node = target
        if isinstance(node, ast.Name):
            self._variable(target, node.id, held)
        elif isinstance(node, ast.Attribute):
            self._attribute(node.attr, held)
        elif isinstance(node, ast.Subscript) and held is None:
            self._bind(Site(source, node.value), _SOMEWHERE)
        elif isinstance(node, (ast.Tuple, ast.List)) and held is not None:
            for index, each in enumerate(node.elts):
                if not held or index in held:
                    self._bind(Site(source, each), _LOADER)
        else:
            raise Unproved(target, "does with a loader what can't be followed")

    def _variable(self, target: Site, name: str, held: _Places | None) -> None:
        source, node = target
        scope = next((each for each in source.around(node) if isinstance(each, (Function, ast.ClassDef))), None)
        if isinstance(scope, ast.ClassDef) or name in self.declared:
            raise Unproved(target, f"keeps the loader {name} where any function may change it")
        self._uses(source, owner_of(source, node, name), name, held)
        for each, taken in self.from_modules if scope is None else ():
            if each.source is not source and not taken.isdisjoint({name, "*"}):
                raise Unproved(each, f"takes the loader {name} of another module")

    def _uses(self, source: PythonSource, owner: ast.AST, name: str, held: _Places | None) -> None:
        """Follow every use of a variable of a function or a module."""
        if self._first_time(owner, name, held):
            for each in self.callees.read.get(name, ()):
                here = each.source is source and isinstance(each.node, ast.Name)
                if here and owner_of(source, each.node, name) is owner:
                    self.follow(each, held)

    def _attribute(self, name: str, held: _Places | None) -> None:
        """Follow every use of an attribute, of whatever object it is."""
        if self._first_time(name, held):
            for each in self.callees.read.get(name, ()):
                if isinstance(each.node, ast.Attribute):
                    self.follow(each, held)

    def _returned(self, site: Site, held: _Places | None) -> None:
        function = site.source.function(site.node)
        calls = tuple(self.callees.calls_of(function)) if function else ()
        if function is None or not calls or any(self.callees.handed(function)):
            raise Unproved(site, "returns a loader to a caller that is not in what was read")
        for call in calls:
            self.follow(call, held)

    def _argument(self, site: Site, call: ast.Call, at: int | str, held: _Places | None) -> None:
        source = site.source
        name = source.dotted(call.func)
        called = self.callees.named_by(source, call.func)
        if not called and name in _LOOKS:
            return
        if not called and held is None and at == 0 and _goes_over(name):
            over = source.parents[call]
            if isinstance(over, (ast.For, ast.comprehension)) or (
                isinstance(over, ast.Call) and over.args[:1] == [call]
            ):
                self.follow(Site(source, call), held)
                return
            raise Unproved(site, f"keeps {name}(…) of a loader")
        if not called:
            raise Unproved(site, f"hands a loader to {name or 'something'}, which may keep it")
        for each in called:
            parameter = _parameter(each, at)
            if parameter is None or any(isinstance(arg, ast.Starred) for arg in call.args):
                raise Unproved(site, f"hands a loader to {name} in a way that can't be followed")
            self._uses(each.source, each.node, parameter, held)


def _looks_only(parent: ast.AST, node: ast.AST, held: _Places | None) -> bool:
    """Whether what stands around a loader only looks at it, starting no worker."""
    if isinstance(parent, ast.Attribute):
        return held is None and parent.attr in _READ
    if isinstance(parent, ast.Compare):
        return all(isinstance(each, (ast.Is, ast.IsNot)) for each in parent.ops)
    if isinstance(parent, (ast.If, ast.IfExp, ast.Assert)):
        return parent.test is node
    return isinstance(parent, ast.Expr)


def _is_first(whole: ast.AST, loop: ast.comprehension) -> bool:
    """Whether a `for` of a comprehension runs once, and not for each round of another one."""
    return (
        isinstance(whole, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)) and whole.generators[0] is loop
    )


def _goes_over(name: str) -> bool:
    """Whether a call passes on what it gets one by one, to the end."""
    return name in {"enumerate", "rich.progress.track"} or (name.startswith("tqdm.") and name.endswith(".tqdm"))


def _parameter(function: Callee, at: int | str) -> str | None:
    """Return the parameter that takes an argument, by its place or name."""
    arguments = function.node.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    if isinstance(at, str):
        return at if at in {*names, *(each.arg for each in arguments.kwonlyargs)} else None
    static = any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in function.node.decorator_list)
    bound = isinstance(function.source.parents[function.node], ast.ClassDef) and not static
    place = at + bound
    return names[place] if place < len(names) else None


def _taken_of_module(site: Site) -> set[str]:
    """Return the names that an expression takes of another module, `*` for all; none where it is another one."""
    source, node = site
    if isinstance(node, ast.ImportFrom):
        return {each.name for each in node.names}
    of_module = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in source.imports
    return {node.attr} if of_module and isinstance(node, ast.Attribute) else set()
