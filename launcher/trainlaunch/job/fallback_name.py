"""What still names the runs of a job file that is no job any more: they are found and ended all the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from trainlaunch.diagnostics import Report
from trainlaunch.repository.root import Reach
from trainlaunch.targets import KUBERNETES, TARGETS
from trainlaunch.yamltree.strict import MappingNode, Node, ScalarNode, parse_yaml
from trainlaunch.yamltree.text_file import read_text

_WORD = r"""(["']?)([a-z0-9](?:[-a-z0-9]{{0,61}}[a-z0-9])?)\1[ \t]*(?:\#.*)?"""
_LINE = r"""^["']?{}["']?[ \t]*:[ \t]+""" + _WORD + "$"
_NAME = re.compile(_LINE.format("name"), re.MULTILINE)
_TARGET = re.compile(_LINE.format("target"), re.MULTILINE)


_NAMESPACE = ("kubernetes", "namespace")


class StatedPlace(NamedTuple):
    """Where a file says that its runs are; None where nothing in it does. `namespace` is a cluster's."""

    name: str | None
    target: str | None
    namespace: str | None


def stated_place(path: Path, reach: Reach) -> StatedPlace:
    """Return what the top-level lines `name:` and `target:` say, unless several disagree, and the namespace."""
    text = ((read_text(path, Report()) if reach.holds(path, path) else None) or "").replace("\r", "\n")
    name, target = _only(_NAME, text), _only(_TARGET, text)
    return StatedPlace(name, target if target in TARGETS else None, _namespace(text, str(path)))


def _namespace(text: str, path: str) -> str | None:
    """Return kubernetes.namespace, of the cluster's overrides first; None in what is no YAML."""
    root = parse_yaml(text, path, Report())
    stated = (_at(root, ("target_overrides", KUBERNETES.name, *_NAMESPACE)), _at(root, _NAMESPACE))
    return next((each.text for each in stated if isinstance(each, ScalarNode) and each.text), None)


def _at(node: Node | None, keys: tuple[str, ...]) -> Node | None:
    for key in keys:
        node = node.items[key][1] if isinstance(node, MappingNode) and key in node.items else None
    return node


def _only(line: re.Pattern[str], text: str) -> str | None:
    found = {each[2] for each in line.finditer(text)}
    return found.pop() if len(found) == 1 else None
