"""What a cluster does when a controller applies a changed manifest: another object, the same one, or a refusal."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from trainlaunch.container.api_fields import field_of
from trainlaunch.container.name_hash import RENDERING_FORMAT
from trainlaunch.container.preflight import SCRIPT_MARK
from trainlaunch.job.reserved import KUBERNETES_LABEL_PREFIX, PLAN_VARIABLE
from trainlaunch.kinds import Kind, Path, workloads
from trainlaunch.plan.launch_plan import LaunchPlan

NEW_NAME, IN_PLACE, REFUSED, SAME = "new name", "in place", "refused", "same"
MAX_CAUSES = 3  # that one line names
# `is` or `are`, and what comes behind it.
_TOLD = {
    NEW_NAME: ("gets a new name and starts", "get new names and start", " beside those that run"),
    IN_PLACE: ("changes in place", "change in place", ""),
    REFUSED: ("is refused", "are refused", " until the old object is deleted"),
    SAME: ("says the same in other bytes", "say the same in other bytes", ""),
}
Values = Mapping[Path, Any]
_FORMAT = re.compile(r"^# rendering format (\d+)$", re.MULTILINE)
_OWN = "what trainlaunch itself writes"
# Names in a manifest that no job sets: variables, labels and annotations of ours, and scripts of probes.
_OURS = ("TRAINLAUNCH_", "PET_", KUBERNETES_LABEL_PREFIX, "app.kubernetes.io/")
_PRUNING = re.compile(r"argocd\.argoproj\.io/(?:sync|compare)-options|kustomize\.toolkit\.fluxcd\.io/prune")
_NUMBER = re.compile(r"(?:^|\s)([a-z]+)=('[^']*'|\S*)")
_FIELDS_OF_NUMBERS = (
    ("name", "name"),
    ("nodes", "torchrun.nnodes"),
    ("ranks", "ranks_per_container"),
    ("stall begin", "healthcheck.stall_after"),
    ("saves", "checkpoint_dir"),
    ("bytes", "checkpoint_bytes"),
    ("inject", "data_loader.inject"),
    ("batch workers prefetch persistent timeout pin first every without need stated", "data_loader"),
)


class ClusterChange(NamedTuple):
    """What happens to one workload, and the fields of its job behind that, each with its place where a policy gave it.

    `shares_checkpoint_dir`: the new run starts beside the old one, and both write to the same folder.
    """

    effect: str
    causes: tuple[str, ...] = ()
    shares_checkpoint_dir: bool = False


def cluster_change(plan: LaunchPlan, have: str, now: str) -> ClusterChange | None:
    """Return what becomes of the workload of the rendered file `have`; None where it holds none that is ours."""
    before, after = _workload(have), _workload(now)
    if before is None or after is None:
        return None
    kind = workloads()[after["kind"]]
    changed = _changed(before, after)
    causes = tuple(_causes(plan, before, after, have))
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


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Path]:
    """Return the paths of what differs, but for the object's own name wherever it stands."""
    name, new_name = before["metadata"]["name"], after["metadata"]["name"]
    old = {path: str(value).replace(name, new_name) for path, value in _leaves(before)}
    new = {path: str(value) for path, value in _leaves(after)}
    return [path for path in {**new, **old} if old.get(path) != new.get(path)]


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield values with their paths; an item is named by its name, so that one more variable moves no other."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, (*path, str(key)))
    elif isinstance(value, list):
        for key, item in zip(_keys(value), value, strict=True):
            yield from _leaves(item, (*path, key))
    else:
        yield path, value


def _keys(items: list[Any]) -> list[str]:
    names = [str(each["name"]) if isinstance(each, Mapping) and "name" in each else "" for each in items]
    return names if all(names) and len({*names}) == len(names) else [str(index) for index in range(len(items))]


def _is_immutable(kind: Kind, path: Path) -> bool:
    if not kind.levels:
        return path[0] == "spec"  # of a Pod hardly anything can be changed
    return any(path[: len(each)] == each for each in kind.immutable)


def _causes(plan: LaunchPlan, before: Mapping[str, Any], after: Mapping[str, Any], have: str) -> list[str]:
    """Return the fields of the job behind the changes; what follows from others stands only where there are none."""
    formats = _FORMAT.search(have)
    if formats and int(formats[1]) != RENDERING_FORMAT:
        return [f"rendering format {formats[1]} is {RENDERING_FORMAT} now"]
    if before["kind"] != after["kind"]:
        return ["kubernetes.kind"]
    old, new = dict(_leaves(before)), dict(_leaves(after))
    found: dict[str, bool] = {}  # and whether it may follow from others
    for path in _changed(before, after):
        field = _field(plan, (old, new), before if path not in new else after, path)
        found[field] = field == "shm_size" and plan.job.shm_size is None
    found.pop("", None)
    causes = [field for field, follows in found.items() if not follows] or _behind_numbers(old, new) or [*found]
    return [_placed(plan, each) for each in causes] or [_OWN]


def _field(plan: LaunchPlan, values: tuple[Values, Values], document: Mapping[str, Any], path: Path) -> str:
    """Return the job's field behind a path; empty where it is of ours, and follows from others."""
    if "args" in path or "command" in path:
        return _of_process(plan, *(_words(each, path) for each in values))
    if any(each.startswith(_OURS) for each in path):
        return ""
    if "env" in path and path[-1] != "env":
        name = path[path.index("env") + 1]
        kind = "secrets" if any("valueFrom" in each and name in each for each in (*values[0], *values[1])) else "env"
        return f"{kind}.{name}"
    if _PRUNING.fullmatch(path[-1]) and path[-1] not in plan.job.annotations:
        return "kubernetes.prune"
    return field_of(plan.job, document, _api_path(document, path))


def _words(values: Values, path: Path) -> list[str]:
    at = path.index("args") if "args" in path else path.index("command")
    return [str(value) for key, value in values.items() if key[: at + 1] == path[: at + 1]]


def _of_process(plan: LaunchPlan, before: list[str], after: list[str]) -> str:
    """Return the field behind a change of `command` or `args`; empty where it is one of the wrapper."""
    marks = [next((at for at, word in enumerate(each) if SCRIPT_MARK in word), -1) for each in (before, after)]
    if max(marks) >= 0:  # /bin/sh -c WRAPPER, behind the image's own ENTRYPOINT
        return "image_entrypoint" if before[: max(0, marks[0] - 2)] != after[: max(0, marks[1] - 2)] else ""
    if _without_torchrun(before) == _without_torchrun(after):
        return "torchrun"
    return "script" if plan.job.script is not None else "command"


def _without_torchrun(words: list[str]) -> list[str]:
    if words[:1] != ["torchrun"]:
        return words
    return list(itertools.dropwhile(lambda each: each.startswith("--"), words[1:]))


def _behind_numbers(old: Values, new: Values) -> list[str]:
    """Return the fields behind the numbers of the plan that differ, where nothing else does."""
    ending = (PLAN_VARIABLE, "value")
    plans = (next((str(each[path]) for path in each if path[-2:] == ending), "") for each in (old, new))
    before, after = (dict(_NUMBER.findall(each)) for each in plans)
    return [
        field for keys, field in _FIELDS_OF_NUMBERS if any(before.get(each) != after.get(each) for each in keys.split())
    ][:1]


def _api_path(document: Mapping[str, Any], path: Path) -> str:
    """Return a path as the API spells it: spec.containers[0].image."""
    value: Any = document
    text = ""
    for key in path:
        if isinstance(value, list):
            index = _keys(value).index(key)
            text, value = f"{text}[{index}]", value[index]
        else:
            text, value = f"{text}.{key}".lstrip("."), value[key]
    return text


def _placed(plan: LaunchPlan, field: str) -> str:
    """Return a field, with its line where a policy gave it."""
    origin = plan.job.origin(field) if re.fullmatch(r"[a-z_.\d]+", field) else None
    if origin is not None and origin.kind == "policy" and origin.span is not None:
        return f"policy line {origin.span.line}: {field}"
    return field


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
