"""What exported policies would do with pods that a cluster has: which they repair, leave or refuse, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trainlaunch.kinds import POD
from trainlaunch.policy.admission import ENFORCE, LABEL
from trainlaunch.policy.api_server import ExpressionFailed, Request, refusals, repaired
from trainlaunch.policy.objects_in_cel import CONTROLLERS
from trainlaunch.policy.repair_in_cel import as_maps, mutation
from trainlaunch.policy.rules_in_cel import shm_rules

REPAIRED, LEFT, REFUSED = "repaired", "left", "refused"
_NO_POD = "a field of it is none that a pod can have"
_OF_SHM = frozenset(rule.message for rule in shm_rules())


class NoPodsError(Exception):
    """A text has no pods; says why."""


class Trial(NamedTuple):
    """What would become of a pod: `name` with its namespace, `verdict`, `why`, and the pod as it would then be."""

    name: str
    verdict: str
    why: str
    pod: Mapping[str, Any]


def pods_in(text: str) -> list[dict[str, Any]]:
    """Return the pods of JSON or YAML, also in Lists and several documents. Raises NoPodsError where there are none."""
    pods = [each for each in _objects(_parsed(text)) if each.get("kind") == POD.name]
    if not pods:
        raise NoPodsError("it has no pod")
    return [{"apiVersion": POD.api_version, **_without_nulls(each)} for each in pods]


def _without_nulls(value: Any) -> Any:
    """Return a value as a server reads it, to which null is absent."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _parsed(text: str) -> list[Any]:
    try:
        return [json.loads(text)]
    except ValueError:
        pass
    import yaml  # JSON needs none

    try:
        found = list(yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise NoPodsError(f"{place}{getattr(error, 'problem', None) or error}") from error
    return list(json.loads(json.dumps(found, default=str)))  # keys that are numbers, and times


def _objects(values: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for each in values:
        if isinstance(each, list):
            yield from _objects(each)
        elif isinstance(each, dict) and isinstance(each.get("items"), list):
            # A List of one kind need not say it of each item.
            kind = str(each.get("kind", "")).removesuffix("List")
            yield from _objects([{"kind": kind, **item} for item in each["items"] if isinstance(item, dict)])
        elif isinstance(each, dict):
            yield each


def try_pods(documents: Sequence[Mapping[str, Any]], pods: Sequence[dict[str, Any]]) -> Iterator[Trial]:
    """Yield what the documents of a repairing export do with each pod, made anew where its namespace enforces them."""
    expression = mutation(as_maps)
    policy = next(each for each in documents if each["kind"] == "MutatingAdmissionPolicy")
    judging = [each for each in documents if each["metadata"]["name"] == "trainlaunch-pods"]
    for pod in pods:
        yield _trial(policy, expression, judging, pod)


def _trial(
    policy: Mapping[str, Any], expression: str, judging: Sequence[Mapping[str, Any]], pod: dict[str, Any]
) -> Trial:
    about = pod["metadata"] if isinstance(pod.get("metadata"), dict) else {}
    name = f"{about.get('namespace', 'default')}/{about.get('name') or about.get('generateName', '')}"
    if not _is_whole(pod):
        return Trial(name, LEFT, _NO_POD, pod)
    request = Request(pod, _maker(about), labels={LABEL: ENFORCE})
    try:
        made, variables = repaired(policy, expression, request)
        why = variables["settled"] or variables["obstacle"]
    except (ExpressionFailed, KeyError):  # a variable without a value
        return Trial(name, LEFT, _NO_POD, pod)
    said = [words.removeprefix("trainlaunch: ") for _, words in refusals(judging, request._replace(submitted=made))]
    if said:
        # Why it is left says what the rules of /dev/shm miss.
        others = [words for words in said if not why or words not in _OF_SHM]
        return Trial(name, REFUSED, "; ".join([*([why] if why else []), *others]), made)
    return Trial(name, LEFT, why, pod) if why else Trial(name, REPAIRED, variables["done"], made)


def _is_whole(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod has what is looked at here, in the shape that it must have."""
    spec, about = pod.get("spec"), pod.get("metadata", {})
    if not isinstance(spec, dict) or not isinstance(about, dict):
        return False
    lists = (spec.get("containers"), about.get("ownerReferences", []))
    shaped = all(isinstance(each, list) and all(isinstance(item, dict) for item in each) for each in lists)
    return shaped and bool(spec["containers"]) and isinstance(about.get("annotations", {}), dict)


def _maker(about: Mapping[str, Any]) -> str:
    """Return the user that makes a pod of such metadata: its node, the controller of its owner, or a person."""
    if "kubernetes.io/config.mirror" in about.get("annotations", {}):
        return "system:node:its"
    owners = [each for each in about.get("ownerReferences", []) if each.get("controller")]
    known = [CONTROLLERS.get(f"{each.get('apiVersion')} {each.get('kind')}", ()) for each in owners]
    return next((users[0] for users in known if users), "")
