"""The policies in force for a job, laid beneath it: profiles under what it states, defaults under both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trainlaunch.diagnostics import Span
from trainlaunch.job.building.precedence import beneath
from trainlaunch.job.ceilings import Given, Policy
from trainlaunch.policy.extends import extended
from trainlaunch.policy.file import DEFAULT, PROFILED, PolicyFile
from trainlaunch.yamltree.source import MappingNode, Node, Scalar, SequenceNode

_ALTERNATIVES = (("command", "script"), ("sample", "batch_bytes"))


class PolicyLayer(NamedTuple):
    """Policy files, the nearest first, and what all of them ask together."""

    files: tuple[PolicyFile, ...]
    asked: Policy

    @property
    def profiles(self) -> dict[str, str]:
        """The names of all profiles, each with the nearest file that has it."""
        return {name: each.path for each in reversed(self.files) for name in each.profiles}

    def beneath(self, laid: MappingNode, target: str | None = None) -> MappingNode:
        """Return a job's tree with all that is given to `target` beneath it; None: what all targets get."""
        defaults = [tree for each in self.files for tree in each.defaults.trees(target)]
        name = _profile((laid, *(each.bare for each in defaults)))
        profiles = [each.profiles[name] for each in self.files if name is not None and name in each.profiles]
        trees = [*(tree for each in profiles for tree in each.trees(target)), *defaults]
        for tree in trees:
            laid = beneath(laid, _without_alternatives(tree.bare, laid))
        for tree in trees:
            laid = extended(laid, tree.more)
        return laid

    def trees(self) -> Iterator[MappingNode]:
        """Yield all that is given to any job, for any target."""
        for each in self.files:
            for gift in (each.defaults, *each.profiles.values()):
                yield from (tree.bare for tree in (gift.base, *gift.overrides.values()))

    def of(self, laid: MappingNode) -> Policy:
        """Return what is asked, with what is given to a job, whose tree with that beneath it is `laid`."""
        return self.asked._replace(given=tuple(_given(laid, _profile((laid,)))))


def _profile(trees: tuple[MappingNode, ...]) -> str | None:
    """Return the profile that the first of the trees with one asks for."""
    for each in trees:
        node = each.items["profile"][1] if "profile" in each.items else None
        if isinstance(node, Scalar) and not node.null:
            return node.text
    return None


def _without_alternatives(given: MappingNode, laid: MappingNode) -> MappingNode:
    """Return `given` without what `laid` states in another way: only one of two may stand in a job."""
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


def _given(node: MappingNode, profile: str | None, path: str = "") -> Iterator[Given]:
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
                yield Given(path + name, said, span.file, profile if kind == PROFILED else None)


def _of_file(span: Span) -> Span:
    return Span(span.file, 1, 1, 1, 1)


def _spelled(node: Node) -> str:
    if isinstance(node, Scalar):
        return node.text if node.text.isprintable() else ascii(node.text)
    if isinstance(node, SequenceNode):
        return f"[{', '.join(map(_spelled, node.items))}]"
    return f"{{{', '.join(f'{name}: {_spelled(value)}' for name, (_, value) in node.items.items())}}}"
