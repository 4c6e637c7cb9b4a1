"""Configuration files that a script names, as trees of keys: YAML and JSON beside it, and what Hydra composes."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

from trainlaunch.repository.regular_files import read_regular
from trainlaunch.repository.root import ITS_OWN
from trainlaunch.script.given_options import given_to
from trainlaunch.script.script_facts import CONFIG, KNOWN, OVERRIDE, Option, Value
from trainlaunch.script.source import MAX_BYTES, PythonSource

SUFFIXES = (".yaml", ".yml", ".json")
_MAX_FILES = 20
_DEEPEST = 6
_INTEGER = re.compile(r"[-+]?\d{1,18}")
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_REFERENCE = re.compile(r"\$\{([A-Za-z_][\w.]*)\}")
_PACKAGE = re.compile(r"#\s*@package\s+(\S+)")


class Leaf(NamedTuple):
    """One value of a configuration and file:line of it."""

    literal: object
    place: str


Tree: TypeAlias = "Mapping[str, Tree | Leaf]"


class Config:
    """A part of a configuration: `path` is its key from the top, dotted.

    `overrides`: the command line may set KEY=VALUE for what is in it. `option` names the file instead of its default.
    """

    def __init__(
        self, tree: Tree | None = None, path: str = "", overrides: bool = False, option: Option | None = None
    ) -> None:
        self.tree: Tree = tree or {}
        self.path = path
        self.overrides = overrides
        self.option = option

    def __getitem__(self, key: str) -> Value | None:
        """What stands at a key; None where nothing does."""
        found = self.tree.get(key)
        path = f"{self.path}.{key}".lstrip(".")
        if isinstance(found, Leaf):
            kind = OVERRIDE if self.overrides else KNOWN
            told = path if self.overrides else ""
            return Value(kind, found.literal, text=told, place=found.place, given_by=self.option)
        if found is None:
            return None
        return Value(CONFIG, Config(found, path, self.overrides, self.option))

    def parts(self) -> Iterator[Config]:
        """Yield it and every part of it that has keys."""
        yield self
        for key, each in self.tree.items():
            if not isinstance(each, Leaf):
                path = f"{self.path}.{key}".lstrip(".")
                yield from Config(each, path, self.overrides, self.option).parts()

    def merged(self, other: Config) -> Config:
        """Return it with another laid over it."""
        return Config(_laid(self.tree, other.tree), self.path, self.overrides or other.overrides, self.option)


class GivenFiles(NamedTuple):
    """The configuration files that a command names, and those of the script that they stand for."""

    names: tuple[str, ...] = ()
    replaced: frozenset[object] = frozenset()


def given_files(options: Iterable[Option], words: Sequence[str]) -> tuple[tuple[Option, ...], GivenFiles]:
    """Return options with the files that a command's words give them as their defaults, and which those are."""
    result, names, replaced = [], [], set()
    for each in options:
        given = [value for _, value in given_to(words, each.names) if value and value.endswith(SUFFIXES)]
        if given:
            names.append(given[-1])
            replaced.add(each.default)
        result.append(each._replace(default=given[-1]) if given else each)
    alone = [word for before, word in pairwise(("", *words)) if word.endswith(SUFFIXES) and before[:1] != "-"]
    names += [each for each in alone if each[:1] != "-" and "=" not in each and each not in names]
    return tuple(result), GivenFiles(tuple(names), frozenset(replaced))


def named_files(
    script: Path, folder: Path, sources: Iterable[PythonSource], options: Iterable[Option], given: GivenFiles
) -> Mapping[str, Config]:
    """Return the configuration files that a program names, as seen from the folder it is started in, by the text.

    Those that its command gives count instead of the script's own; none do where one of them can't be read.
    """
    by_default = {each.default: each for each in options if isinstance(each.default, str)}
    found: dict[str, Config] = {}
    overrides = any(_reads_overrides(source) for source in sources)
    for text in dict.fromkeys((*given.names, *texts_of_files(sources))):
        own = text not in given.names
        if own and (text in given.replaced or len(found) >= _MAX_FILES):
            continue
        tree = _read(script, folder / text)
        if tree is not None:
            found[text] = Config(tree, overrides=overrides, option=by_default.get(text) if own else None)
        elif not own:
            return {}
    return found


def _reads_overrides(source: PythonSource) -> bool:
    """Whether a function takes words of the command line apart as KEY=VALUE, a dotted key in its parts."""
    for call, called in source.calls:
        if called.endswith((".split", ".partition")) and call.args and _text(call.args[0]) == "=":
            around = source.function(call) or source.tree
            text = ast.unparse(around)
            if "sys.argv" in text and re.search(r"""split\(['"]\.['"]""", text):
                return True
    return False


def texts_of_files(sources: Iterable[PythonSource]) -> tuple[str, ...]:
    """Return the texts of a program that end like the name of a configuration file."""
    nodes = (node for source in sources for node in source.nodes if isinstance(node, ast.Constant))
    return tuple({node.value: None for node in nodes if str(node.value).endswith(SUFFIXES)})  # type: ignore[misc]


def _read(script: Path, path: Path) -> Tree | None:
    """Return a file's tree, without what Hydra reads in it; None where it can't be read or holds no mapping."""
    found = _document(script, path)
    return None if found is None else found[0]


def _document(script: Path, path: Path) -> tuple[Tree, str, object] | None:
    """Return a file's tree, its text and the node of its `defaults`."""
    from trainlaunch.yamltree.tolerant import Mapping as MappingNode
    from trainlaunch.yamltree.tolerant import documents

    try:  # most texts that end like one name no file, and some not even a path
        if not path.is_file() or not ITS_OWN.holds(path, script):
            return None
        text = read_regular(path, MAX_BYTES).decode("utf-8-sig")
    except (OSError, ValueError):
        return None
    name = Path(os.path.relpath(path, script.parent)).as_posix()
    read = documents(text.expandtabs(1) if path.suffix == ".json" else text, name)
    if read.broken is not None or len(read.nodes) != 1 or not isinstance(read.nodes[0], MappingNode):
        return None
    root = read.nodes[0]
    return _tree(root), text, root.items.get("defaults")


def _tree(node: object) -> Tree:
    from trainlaunch.yamltree.tolerant import Mapping as MappingNode
    from trainlaunch.yamltree.tolerant import Scalar

    found: dict[str, Tree | Leaf] = {}
    for key, each in node.items.items() if isinstance(node, MappingNode) else ():
        if isinstance(each, MappingNode):
            found[key] = _tree(each)
        elif isinstance(each, Scalar):
            found[key] = Leaf(_literal(each.text, plain=each.plain), f"{each.source.file}:{each.span.line}")
    return found


def _literal(text: str, *, plain: bool) -> object:
    if not plain:
        return text
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def hydra_config(script: Path, source: PythonSource) -> Config | None:
    """Return what `@hydra.main` of a script composes; None where it has none, or its files aren't there."""
    for call, called in source.calls:
        if called == "hydra.main":
            stated = {each.arg: each.value for each in call.keywords if each.arg}
            stated |= dict(zip(("config_path", "config_name"), call.args, strict=False))
            name, folder = (_text(stated.get(each)) for each in ("config_name", "config_path"))
            if name:
                root = script.parent / (folder or ".")
                tree = _composed(script, root, "", name, "", _DEEPEST)
                return Config(_resolved(tree, tree), overrides=True) if tree else None
    return None


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _composed(script: Path, root: Path, group: str, name: str, package: str, deepest: int) -> Tree:
    """Return the tree of one file of Hydra's with those of its defaults list, in its order."""
    path = root / group / (name if name.endswith(SUFFIXES) else f"{name}.yaml")
    read = _document(script, path) if deepest else None
    if read is None:
        return {}
    tree, text, defaults = read
    stated = _PACKAGE.search(text.partition("\n\n")[0])
    if stated:
        package = "" if stated[1] == "_global_" else stated[1].replace("_group_", group.replace("/", "."))
    own = _at(package, {key: each for key, each in tree.items() if key != "defaults"})
    result: Tree = {}
    steps = list(_steps(defaults))
    if "_self_" not in {step for _, step, _ in steps}:
        steps.append(("", "_self_", None))
    for into, step, where in steps:
        if step == "_self_":
            result = _laid(result, own)
            continue
        inner = into.lstrip("/") if into.startswith("/") else "/".join(filter(None, (group, into)))
        inside = where if where is not None else (inner.replace("/", ".") if into else package)
        result = _laid(result, _composed(script, root, inner, step, inside, deepest - 1))
    return result


def _steps(defaults: object) -> Iterator[tuple[str, str, str | None]]:
    """Yield (group, name, package or None) of a defaults list; a file of the same folder has no group."""
    from trainlaunch.yamltree.tolerant import Mapping as MappingNode
    from trainlaunch.yamltree.tolerant import Scalar, Sequence

    for each in defaults.items if isinstance(defaults, Sequence) else ():
        if isinstance(each, Scalar):
            yield "", each.text, None
        elif isinstance(each, MappingNode):
            for key, chosen in each.items.items():
                group, at, package = key.rpartition(" ")[2].partition("@")
                if key.startswith("override ") or group.startswith("hydra"):
                    continue
                for name in chosen.items if isinstance(chosen, Sequence) else (chosen,):
                    if isinstance(name, Scalar) and name.text not in {"", "null"}:
                        yield group, name.text, package.replace("_global_", "") if at else None


def _at(package: str, tree: Tree) -> Tree:
    for part in reversed([each for each in package.split(".") if each]):
        tree = {part: tree}
    return tree


def _laid(under: Tree, over: Tree) -> Tree:
    """Return a tree with another laid over it: parts are merged, values replaced."""
    result = dict(under)
    for key, each in over.items():
        below = result.get(key)
        both = not isinstance(each, Leaf) and below is not None and not isinstance(below, Leaf)
        result[key] = _laid(below, each) if both else each  # type: ignore[arg-type]
    return result


def _resolved(tree: Tree, root: Tree) -> Tree:
    """Return a tree in which `${data.batch_size}` is what stands there."""
    return {
        key: _followed(each, root) if isinstance(each, Leaf) else _resolved(each, root) for key, each in tree.items()
    }


def _followed(leaf: Leaf, root: Tree) -> Leaf:
    match = _REFERENCE.fullmatch(leaf.literal) if isinstance(leaf.literal, str) else None
    found: Tree | Leaf | None = root
    for key in match[1].split(".") if match else ():
        found = found.get(key) if found is not None and not isinstance(found, Leaf) else None
    return leaf._replace(literal=found.literal) if match and isinstance(found, Leaf) else leaf
