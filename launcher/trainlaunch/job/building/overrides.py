"""Takes a job's tree apart: its own fields, and those of target_overrides by target."""

from __future__ import annotations

from trainlaunch.diagnostics import Report
from trainlaunch.job.building.precedence import mapping_of_kind
from trainlaunch.job.fields.table import OVERRIDE, OVERRIDES
from trainlaunch.job.names import refuse_unknown_key
from trainlaunch.job.values.reader import ValueReader
from trainlaunch.targets import TARGETS
from trainlaunch.yamltree.source import MappingNode


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
            overrides[name] = mapping_of_kind(value, "target_overrides")
        else:
            ValueReader(report, partial=True).read(OVERRIDE, value, f"{OVERRIDES.name}.{name}")
    return base, overrides
