"""Reads the parts `probe` and `tune` of a lock, as trainlaunch.committed.lock_writer writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set

from trainlaunch.job.loader_spec import ProbedLoader, ProbeMeasurement, Tune
from trainlaunch.targets import TARGETS
from trainlaunch.units import parse_cpus
from trainlaunch.yamltree.strict import MappingNode, Node, ScalarNode, SequenceNode

MAX_DIGITS = 15
START_METHODS = frozenset({"fork", "spawn", "forkserver"})
TURNS = frozenset({"together", "in_turn"})
# What a script may set itself, other than the job's plan.
_OWN = frozenset({"num_workers", "prefetch_factor", "persistent_workers"})
_OPTIONAL = frozenset({"batches_kept", "against_workers", "script"})
_DEFECT = re.compile(r"[a-z]+(-[a-z]+)*")


class NotAsWritten(Exception):
    """A part is not what its command writes: `node` is where that shows."""

    def __init__(self, node: Node, problem: str) -> None:
        super().__init__(problem)
        self.node = node


def probe_of(node: Node) -> ProbeMeasurement:
    """Return the part `probe`. Raises NotAsWritten."""
    facts = _mapping(node, {*ProbeMeasurement._fields} - {"forced_input", "span"}, optional={"forced_input"})
    return ProbeMeasurement(
        input=_text(facts["input"]),
        target=_one_of(facts["target"], TARGETS),
        torch=_text(facts["torch"]),
        python=_text(facts["python"]),
        start_method=_one_of(facts["start_method"], START_METHODS),
        loaders_run=_one_of(facts["loaders_run"], TURNS),
        batches_seen=_number(facts["batches_seen"]),
        loaders=tuple(_loader(each) for each in _list(facts["loaders"])),
        dataset_tensor_bytes=_number(facts["dataset_tensor_bytes"]),
        forced_input=_text(facts["forced_input"]) if "forced_input" in facts else None,
        span=node.span,
    )


def tunes_of(node: Node) -> dict[str, Tune]:
    """Return the part `tune` by target. Raises NotAsWritten."""
    if not isinstance(node, MappingNode):
        raise NotAsWritten(node, "tune is no mapping")
    return {_one_of(name, TARGETS): _tune(value) for name, value in node.items.values()}


def _tune(node: Node) -> Tune:
    facts = _mapping(node, {"input", "cpus", "num_workers", "prefetch_factor"}, optional={"threads", "usable_cpus"})
    cpus = facts["cpus"]
    return Tune(
        input=_text(facts["input"]),
        cpus=None if isinstance(cpus, ScalarNode) and cpus.null else _cpus(cpus),
        num_workers=_number(facts["num_workers"]),
        prefetch_factor=_number(facts["prefetch_factor"], least=1),
        threads=_number(facts["threads"], least=1) if "threads" in facts else None,
        usable_cpus=_number(facts["usable_cpus"], least=1) if "usable_cpus" in facts else None,
        span=node.span,
    )


def _loader(node: Node) -> ProbedLoader:
    facts = _mapping(node, {"at", "num_workers", "batches_held", "batch"}, optional=_OPTIONAL)
    batch = _mapping(facts["batch"], {"storages"}, optional={"varying"})
    own = _mapping(facts["script"], set(), optional=_OWN) if "script" in facts else {}
    return ProbedLoader(
        at=_text(facts["at"]),
        num_workers=_number(facts["num_workers"]),
        batches_held=_number(facts["batches_held"], least=1),
        storages=tuple(_number(each) for each in _list(batch["storages"])),
        varying="varying" in batch and _truth(batch["varying"]),
        own_workers=_number(own["num_workers"]) if "num_workers" in own else None,
        own_prefetch=_number(own["prefetch_factor"], least=1) if "prefetch_factor" in own else None,
        own_persistent=_truth(own["persistent_workers"]) if "persistent_workers" in own else None,
        batches_kept=_number(facts["batches_kept"]) if "batches_kept" in facts else None,
        against_workers=tuple(map(_defect, _list(facts["against_workers"]))) if "against_workers" in facts else (),
        span=node.span,
    )


def _mapping(node: Node, names: Set[str], *, optional: Set[str] = frozenset()) -> Mapping[str, Node]:
    if not isinstance(node, MappingNode):
        raise NotAsWritten(node, "expected a mapping")
    missing, unknown = names - set(node.items), set(node.items) - names - optional
    if missing or unknown:
        words = [f"no {each}" for each in sorted(missing)] + [f"an unknown {each}" for each in sorted(unknown)]
        raise NotAsWritten(node, f"it has {', '.join(words)}")
    return {name: value for name, (_, value) in node.items.items()}


def _list(node: Node) -> tuple[Node, ...]:
    if not isinstance(node, SequenceNode):
        raise NotAsWritten(node, "expected a list")
    return node.items


def _scalar(node: Node) -> ScalarNode:
    if not isinstance(node, ScalarNode) or node.null:
        raise NotAsWritten(node, "expected one value")
    return node


def _text(node: Node) -> str:
    return _scalar(node).text


def _defect(node: Node) -> str:
    text = _text(node)
    if not _DEFECT.fullmatch(text) or len(text) > 40:
        raise NotAsWritten(node, "expected the name of a defect like handle-in-init")
    return text


def _number(node: Node, *, least: int = 0) -> int:
    text = _scalar(node).text
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS) or int(text) < least:
        raise NotAsWritten(node, f"expected a whole number from {least} of at most {MAX_DIGITS} digits")
    return int(text)


def _cpus(node: Node) -> int:
    try:
        return parse_cpus(_scalar(node).text)
    except ValueError as cause:
        raise NotAsWritten(node, "expected a number of CPUs like 4 or 500m") from cause


def _one_of(node: Node, words: Mapping[str, object] | frozenset[str]) -> str:
    text = _scalar(node).text
    if text not in words:
        raise NotAsWritten(node, f"expected one of {', '.join(sorted(words))}")
    return text


def _truth(node: Node) -> bool:
    return _one_of(node, frozenset({"true", "false"})) == "true"
