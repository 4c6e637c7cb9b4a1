"""What exported policies would do with pods that a cluster has: which they repair, leave or refuse, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trainlaunch.policy.admission import ENFORCE, LABEL
from trainlaunch.policy.api_server import ExpressionFailed, Request, refusals, repaired
from trainlaunch.policy.objects_in_cel import CONTROLLERS
from trainlaunch.policy.repair_in_cel import as_maps, mutation
from trainlaunch.policy.rules_in_cel import shm_rules

REPAIRED, LEFT, REFUSED = "repaired", "left", "refused"
_NO_POD = "a field of it is none that a pod can have"
_OF_SHM = frozenset(rule.message for rule in shm_rules())


class Trial(NamedTuple):
    """What would become of a pod: `name` with its namespace, `verdict`, `why`, and the pod as it would then be."""

    name: str
    verdict: str
    why: str
    pod: Mapping[str, Any]


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
        # The first rule of /dev/shm that it breaks says what to write; the next ones follow from it.
        first = next((words for words in said if words in _OF_SHM), None)
        shown = [words for words in said if words not in _OF_SHM or words == first]
        return Trial(name, REFUSED, "; ".join(shown) + (f". Not repaired: {why}" if why and first else ""), made)
    return Trial(name, LEFT, why, pod) if why else Trial(name, REPAIRED, variables["done"], made)


def _is_whole(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod has what is looked at here, in the shape that it must have."""
    spec, about = pod.get("spec"), pod.get("metadata", {})
    if not isinstance(spec, dict) or not isinstance(about, dict):
        return False
    of_spec = (spec.get("containers"), spec.get("initContainers", []), spec.get("volumes", []))
    lists = (*of_spec, about.get("ownerReferences", []))
    shaped = all(isinstance(each, list) and all(isinstance(item, dict) for item in each) for each in lists)
    return shaped and bool(spec["containers"]) and isinstance(about.get("annotations", {}), dict)


def _maker(about: Mapping[str, Any]) -> str:
    """Return the user that makes a pod of such metadata: its node, the controller of its owner, or a person."""
    if "kubernetes.io/config.mirror" in about.get("annotations", {}):
        return "system:node:its"
    owners = [each for each in about.get("ownerReferences", []) if each.get("controller")]
    known = [CONTROLLERS.get(f"{each.get('apiVersion')} {each.get('kind')}", ()) for each in owners]
    return next((users[0] for users in known if users), "")
