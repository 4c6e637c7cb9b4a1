"""What validation looks at: a job that was read, its target, and where its errors go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from trainlaunch.diagnostics import Report
from trainlaunch.job.values.scalar_reader import BAD
from trainlaunch.targets import Target, target_record
from trainlaunch.yamltree.strict import MappingNode, Node, SequenceNode


class ValidationContext(NamedTuple):
    """A job that was read: its values, the tree that they came from, its target, and where errors go.

    `misspelt` are the fields that an unknown key, which has its own error, was taken for.
    """

    values: dict[str, Any]
    root: MappingNode
    target: str
    report: Report
    misspelt: frozenset[str] = frozenset()

    @property
    def target_record(self) -> Target:
        """What is so of its target."""
        return target_record(self.target)

    def value(self, path: str) -> Any:
        """Return the value of a dotted field, None where it isn't set or can't be read."""
        found: Any = self.values
        for name in path.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        return None if found is BAD else found

    def entries(self, path: str) -> Iterator[tuple[str, Any]]:
        """Yield each value of a list or mapping that could be read, with its own path, as `mounts.0`."""
        found = self.value(path) or ()
        for key, each in found.items() if isinstance(found, dict) else enumerate(found):
            if each is not BAD:
                yield f"{path}.{key}", each

    def mounts(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the mounts of which every field could be read, each with its path."""
        return [(path, mount) for path, mount in self.entries("mounts") if BAD not in mount.values()]

    def arguments(self) -> list[tuple[str, str]]:
        """Return the words of the command that could be read, each with its path."""
        return list(self.entries("command"))

    def node(self, path: str) -> Node:
        """Return the node of a dotted field, or the nearest one around it."""
        node: Node = self.root
        parts = path.split(".")
        while parts:
            taken, below = _step(node, parts)
            if below is None:
                break
            node, parts = below, parts[taken:]
        return node

    def add(self, code: str, path: str, message: str, *, fix: str, why: str = "") -> None:
        """Report an error at a dotted field."""
        self.report.add(code, self.node(path), message=message, fix=fix, why=why, field=path)


def cannot(job: ValidationContext, field: str, what: str, *, fix: str, why: str = "") -> None:
    """Report a field that the job's target does not support (TL401)."""
    job.add("TL401", field, f"{job.target} has no {what}", fix=fix, why=why)


def _step(node: Node, parts: list[str]) -> tuple[int, Node | None]:
    """Return what stands below `node` at the longest start of `parts` that is a key; labels have dots."""
    if isinstance(node, MappingNode):
        for taken in range(len(parts), 0, -1):
            entry = node.items.get(".".join(parts[:taken]))
            if entry is not None:
                return taken, entry[1]
    if isinstance(node, SequenceNode) and parts[0].isdigit() and int(parts[0]) < len(node.items):
        return 1, node.items[int(parts[0])]
    return 0, None
