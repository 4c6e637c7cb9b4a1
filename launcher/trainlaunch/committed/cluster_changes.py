"""What a cluster makes of a changed rendering that a controller applies: another object, the same one, or a refusal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from trainlaunch.container.api_fields import field_of
from trainlaunch.formats.workload import flat
from trainlaunch.kinds import Kind, Path, workloads
from trainlaunch.plan.launch_plan import LaunchPlan

NEW_NAME, IN_PLACE, REFUSED, SAME = "new name", "in place", "refused", "same"
MAX_CAUSES = 3  # that one line names
# Verbs of one and of several, and what comes behind them.
_TOLD = {
    NEW_NAME: ("gets a new name and starts", "get new names and start", " beside those that run"),
    IN_PLACE: ("changes in place", "change in place", ""),
    REFUSED: ("is refused", "are refused", " until the old object is deleted"),
    SAME: ("says the same in other bytes", "say the same in other bytes", ""),
}
_SCRIPT = re.compile(r"\btl_\w+=")  # a text of ours, and no value of the job


class ClusterChange(NamedTuple):
    """What happens to one workload, and the fields of its job behind that, each with its place where a policy gave it.

    `shares_checkpoint_dir`: the new run starts beside the old one, and both write to the same folder.
    """

    effect: str
    causes: tuple[str, ...] = ()
    shares_checkpoint_dir: bool = False


def cluster_change(plan: LaunchPlan, have: str, now: str) -> ClusterChange | None:
    """Return what becomes of the workload of a rendering that was `have`; None where that holds none that is ours."""
    before, after = _workload(have), _workload(now)
    if before is None or after is None:
        return None
    kind = workloads()[after["kind"]]
    changed = list(_changed(before, after))
    causes = tuple(dict.fromkeys(_causes(plan, after, changed)))
    place = [(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in (before, after)]
    if place[0] != place[1]:
        folder = plan.job.checkpoint_dir
        return ClusterChange(NEW_NAME, causes, folder is not None and folder in have)
    if not changed:
        return ClusterChange(SAME)
    return ClusterChange(REFUSED if any(_is_immutable(kind, each) for each in changed) else IN_PLACE, causes)


def _workload(text: str) -> Mapping[str, Any] | None:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        documents = [each for each in yaml.load_all(text, Loader=loader) if isinstance(each, Mapping)]
    except yaml.YAMLError:
        return None
    ours = (each for each in documents if each.get("kind") in workloads() and _is_named(each))
    return next(ours, None)


def _is_named(document: Mapping[str, Any]) -> bool:
    metadata = document.get("metadata")
    return isinstance(metadata, Mapping) and isinstance(metadata.get("name"), str)


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths of what differs, but for the object's own name wherever it stands."""
    name, new_name = before["metadata"]["name"], after["metadata"]["name"]
    old = {path: str(value).replace(name, new_name) for path, value in flat(before)}
    new = {path: str(value) for path, value in flat(after)}
    return (path for path in {**new, **old} if old.get(path) != new.get(path))


def _is_immutable(kind: Kind, path: str) -> bool:
    keys: Path = tuple(path.split("."))
    if not kind.levels:
        return keys[0] == "spec"  # of a Pod hardly anything can be changed
    return any(keys[: len(each)] == each for each in kind.immutable)


def _causes(plan: LaunchPlan, document: Mapping[str, Any], changed: Sequence[str]) -> Iterator[str]:
    """Yield the fields of the job behind some changes; the texts of ours follow from others, where there are any."""
    values = dict(flat(document))
    own = [path for path in changed if not _SCRIPT.search(str(values.get(path, "")))]
    for path in own or changed:
        field = field_of(plan.job, document, re.sub(r"\.(\d+)", r"[\1]", path))
        origin = plan.job.origin(field) if field else None
        if origin is not None and origin.kind == "policy" and origin.span is not None:
            yield f"policy line {origin.span.line}: {field}"
        else:
            yield field or ("the preflight" if not own else path.rpartition(".")[2])


def summary(changes: Iterable[ClusterChange]) -> str:
    """Return one sentence like a plan's last line; empty where no cluster would notice anything."""
    found = list(changes)
    told = []
    for effect, (one, several, end) in _TOLD.items():
        if group := [each for each in found if each.effect == effect]:
            told.append(f"{len(group)} {several if len(group) > 1 else one}{end}{_in_brackets(group)}")
    if sharing := sum(each.shares_checkpoint_dir for each in found):
        told.append(f"{sharing} {'shares' if sharing == 1 else 'share'} a checkpoint_dir with the run that goes on")
    return f"Cluster: {', '.join(told)}" if told else ""


def _in_brackets(group: Sequence[ClusterChange]) -> str:
    causes = [cause for cause, _ in Counter(cause for each in group for cause in each.causes).most_common()]
    more = [f"and {len(causes) - MAX_CAUSES} more"] * (len(causes) > MAX_CAUSES)
    return f" ({', '.join([*causes[:MAX_CAUSES], *more])})" if causes else ""
