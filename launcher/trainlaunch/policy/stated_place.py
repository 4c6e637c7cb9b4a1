"""What still names the runs of a job file that is no job any more: they are found and ended all the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from trainlaunch.diagnostics import Report, Span
from trainlaunch.job.reading.job_reader import LayerOf
from trainlaunch.job.reading.precedence import merged, split
from trainlaunch.repository.root import Reach
from trainlaunch.targets import DEFAULT_TARGET, KUBERNETES, TARGETS
from trainlaunch.yamltree.strict import MappingNode, Node, ScalarNode, parse_yaml
from trainlaunch.yamltree.text_file import read_text

_WORD = r"""(["']?)([a-z0-9](?:[-a-z0-9]{{0,61}}[a-z0-9])?)\1[ \t]*(?:\#.*)?"""
_LINE = r"""^["']?{}["']?[ \t]*:[ \t]+""" + _WORD + "$"
_NAME = re.compile(_LINE.format("name"), re.MULTILINE)
_TARGET = re.compile(_LINE.format("target"), re.MULTILINE)


class StatedPlace(NamedTuple):
    """Where the runs of a file are; `name` is None where nothing says whose or where they are.

    `namespace` is a cluster's, None where none is set.
    """

    name: str | None
    target: str
    namespace: str | None


def stated_place(path: Path, *, target: str | None, layer_of: LayerOf, reach: Reach) -> StatedPlace:
    """Return what the top-level lines `name:` and `target:` say, unless several disagree, and the namespace.

    Policies give what the file leaves open, and where they can't be read nobody knows what. `target` is the one that is
    asked for.
    """
    text = ((read_text(path, Report()) if reach.holds(path, path) else None) or "").replace("\r", "\n")
    root = parse_yaml(text, str(path), Report())
    base, overrides = split(root if isinstance(root, MappingNode) else _nothing(path), Report())
    unread = Report()
    ruled = layer_of(path, base, unread)
    given = ruled.apply_defaults(base) if ruled else base
    stated = target or _only(_TARGET, text) or _text_at(given, "target")
    chosen = stated if stated in TARGETS else DEFAULT_TARGET
    laid = merged(base, overrides[KUBERNETES.name]) if KUBERNETES.name in overrides else base
    laid = ruled.apply_defaults(laid, KUBERNETES.name) if ruled else laid
    namespace = _text_at(laid, "kubernetes", "namespace")
    elsewhere = len(unread) and (stated is None or (chosen == KUBERNETES.name and namespace is None))
    return StatedPlace(None if elsewhere else _only(_NAME, text), chosen, namespace)


def _nothing(path: Path) -> MappingNode:
    return MappingNode({}, Span(str(path), 1, 1, 1, 1))


def _text_at(node: Node | None, *keys: str) -> str | None:
    for key in keys:
        node = node.items[key][1] if isinstance(node, MappingNode) and key in node.items else None
    return node.text if isinstance(node, ScalarNode) and not node.null and node.text else None


def _only(line: re.Pattern[str], text: str) -> str | None:
    found = {each[2] for each in line.finditer(text)}
    return found.pop() if len(found) == 1 else None
