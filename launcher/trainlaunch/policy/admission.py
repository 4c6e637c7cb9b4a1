"""A policy as ValidatingAdmissionPolicies: a cluster enforces what the launcher asks of a job, whoever applies it.

Two of them: one for pods, whoever made them, and one for the objects whose controllers make pods, so that `kubectl
apply` itself is refused. The rules are CEL as an API server of 1.31 and later reads it: optional fields, RE2, and its
own `quantity` and `sum`. A MutatingAdmissionPolicy beside them gives pods that nobody rendered their /dev/shm.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from trainlaunch.job.ceilings import Policy
from trainlaunch.kinds import POD, PYTORCH_JOB, AuxiliaryObject, Kind
from trainlaunch.policy import repair_in_cel as repair
from trainlaunch.policy import rules_in_cel as cel
from trainlaunch.policy.objects_in_cel import MAKERS, maker_variables, pod_variables
from trainlaunch.yamltree.emitter import comment, yaml_block

LABEL, WARN, REPAIR, ENFORCE = "trainlaunch.dev/policy", "warn", "repair", "enforce"
NAMESPACE_LABEL = {LABEL: ENFORCE}
_GROUP = "admissionregistration.k8s.io"
_SAYS = ("Warn", "Audit")
# Controllers must be able to take a finalizer off what was made before the policy.
_IS_NEW = 'request.operation == "CREATE" || object.spec != oldObject.spec' + "".join(
    f" ||\n  object.?metadata.?{each}.orValue({{}}) != oldObject.?metadata.?{each}.orValue({{}})"
    for each in ("labels", "annotations")
)
# A node's static pod runs whether a server takes the picture of it or not.
_IS_NO_MIRROR = (
    '!request.userInfo.username.startsWith("system:node:") ||\n'
    '  !object.?metadata.?annotations[?"kubernetes.io/config.mirror"].hasValue()'
)


def admission_documents(
    policy: Policy | None, *, enforce: bool, controllers: Sequence[str] = (), mutating: str | None = None
) -> list[dict[str, Any]]:
    """Return the policies and their bindings; None asks for the rules of /dev/shm alone.

    Without `enforce` an API server warns and writes its audit log. A binding selects the namespaces labelled
    `NAMESPACE_LABEL`, never all: device plugins' validators and inference ask for GPUs too. `controllers` are users
    that make pods or Jobs of judged objects, besides those of usual installations. `mutating` is the version of the
    API by which pods are repaired in namespaces labelled so, which are warned of what is left; None: none are.
    """
    makers = tuple(each.kind for each in MAKERS)
    actions = ("Deny",) if enforce else _SAYS
    documents = []
    for name, kinds in (("trainlaunch-pods", (POD,)), ("trainlaunch-templates", makers)):
        documents += [
            _policy(name, kinds, policy, controllers, repairs=mutating is not None),
            _binding(name, {"matchLabels": NAMESPACE_LABEL}, actions),
        ]
        if mutating is not None:
            documents.append(_binding(name, _labelled(WARN, REPAIR), _SAYS, name=f"{name}-{WARN}"))
    return [*documents, *(_repairing(policy, mutating) if mutating is not None else ())]


def _labelled(*values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": LABEL, "operator": "In", "values": list(values)}]}


def _repairing(policy: Policy | None, api: str) -> list[dict[str, Any]]:
    """Return the policy that repairs pods, and the one that says why others are left; neither ever stops a pod."""
    share, most = _shm_bounds(policy)
    variables = [{"name": key, "expression": text} for key, text in repair.repair_variables(share, most).items()]
    rule = {"apiGroups": [""], "apiVersions": [POD.api_version], "operations": ["CREATE"], "resources": [POD.plural]}
    shared = {"failurePolicy": "Ignore", "matchConstraints": {"resourceRules": [rule]}, "variables": variables}
    patch = {"patchType": "JSONPatch", "jsonPatch": {"expression": repair.mutation()}}
    left = {
        "expression": 'variables.settled != ""',
        "message": "trainlaunch: /dev/shm is not repaired",
        "messageExpression": repair.warning(f"{LABEL}={REPAIR}"),
        "reason": "Invalid",
    }
    mutating = {**shared, "reinvocationPolicy": "IfNeeded", "mutations": [patch]}
    return [
        _object("MutatingAdmissionPolicy", "trainlaunch-repair", mutating, api),
        _binding("trainlaunch-repair", _labelled(REPAIR, ENFORCE), kind="MutatingAdmissionPolicyBinding", api=api),
        _object("ValidatingAdmissionPolicy", "trainlaunch-left", {**shared, "validations": [left]}),
        _binding("trainlaunch-left", _labelled(WARN, REPAIR, ENFORCE), _SAYS),
    ]


def _shm_bounds(policy: Policy | None) -> tuple[Fraction, int | None]:
    """Return the share of a memory limit that a repair takes, and the most bytes; None: any."""
    if policy is None:
        return repair.SHARE, None
    ceiling = policy.max.get("shm_size")
    return policy.shm_share or repair.SHARE, ceiling and ceiling.value


def admission_text(
    policy: Policy | None, *, enforce: bool, controllers: Sequence[str] = (), mutating: str | None = None
) -> str:
    """Return those documents as YAML for `kubectl apply -f -`, with what they leave out as comments on top."""
    source = f" from {', '.join(policy.files)}" if policy else ""
    head = [
        f"Written by `trainlaunch policy export`{source}.",
        f"Holds in namespaces with the label {'='.join(next(iter(NAMESPACE_LABEL.items())))}, for pods that carry the",
        "launcher's label or ask for GPUs, and for what makes such pods.",
        *(
            ["Every pod there is asked whether anything but its requests gives it GPUs."]
            if (policy is not None and not policy.max.keys().isdisjoint({"gpus", "total_gpus"}))
            else []
        ),
        *(
            [
                f"There and under {LABEL}={REPAIR} a pod that trains gets a volume at /dev/shm if none is there;",
                f"under {REPAIR} and {WARN} nothing is refused, and what is left is warned of.",
            ]
            if mutating is not None
            else []
        ),
        *(f"Not here: {each}, which only the launcher sees." for each in _left_out(policy)),
    ]
    comments = "".join(f"# {comment(each)}\n" for each in head)
    made = admission_documents(policy, enforce=enforce, controllers=controllers, mutating=mutating)
    return comments + "---\n".join(f"{yaml_block(each)}\n" for each in made)


def _left_out(policy: Policy | None) -> list[str]:
    """Return the demands that no server can judge."""
    if policy is None:
        return []
    names = [f"max.{name}" for name in ("num_workers",) if name in policy.max]
    seen_by_us = ("allowed_patch_paths", "allowed_extra_args")
    names += [name for name in seen_by_us if name in policy.allowed]
    return [*names, *(["required"] if policy.required else []), *(["severities"] if policy.severities else [])]


def _policy(
    name: str, kinds: Sequence[Kind | AuxiliaryObject], policy: Policy | None, controllers: Sequence[str], repairs: bool
) -> dict[str, Any]:
    """Return what refuses; of templates whose pods will be repaired, where that is done, no /dev/shm is asked."""
    of_pods = POD in kinds
    variables = (pod_variables if of_pods else maker_variables)(policy, controllers)
    unsized = "concerned"
    if repairs and not of_pods:
        unsized = "unrepaired"
        label = f'dyn(namespaceObject).?metadata.?labels[?"{LABEL}"].orValue("") in {json.dumps([REPAIR, ENFORCE])}'
        variables[unsized] = f"variables.concerned.filter(p, !({label} && {repair.repairable(*_shm_bounds(policy))}))"
    rules = [*cel.shm_rules(unsized), *(cel.asked_rules(policy, kinds) if policy else ())]
    conditions = {"is-new": _IS_NEW, **({"is-no-mirror": _IS_NO_MIRROR} if of_pods else {})}
    said = ((each.expression, f"trainlaunch: {each.message}") for each in rules)
    spec: dict[str, Any] = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": _pod_resources() if of_pods else [_resource(each) for each in kinds]},
        "matchConditions": [{"name": key, "expression": text} for key, text in conditions.items()],
        "variables": [{"name": key, "expression": text} for key, text in variables.items()],
        "validations": [{"expression": text, "message": message, "reason": "Invalid"} for text, message in said],
    }
    return _object("ValidatingAdmissionPolicy", name, spec)


def _pod_resources() -> list[dict[str, Any]]:
    """Return the requests that bring or change containers: `kubectl debug` and a resize use subresources."""
    changed = [POD.plural, f"{POD.plural}/ephemeralcontainers", f"{POD.plural}/resize"]
    rule = {"apiGroups": [""], "apiVersions": [POD.api_version]}
    return [
        {**rule, "operations": ["CREATE"], "resources": [POD.plural]},
        {**rule, "operations": ["UPDATE"], "resources": changed},
    ]


def _resource(each: Kind | AuxiliaryObject) -> dict[str, Any]:
    group, _, version = each.api_version.rpartition("/")
    resources = [each.plural, *([f"{each.plural}/scale"] if each is PYTORCH_JOB else [])]  # the only one that has it
    rule = {"apiGroups": [group], "apiVersions": [version]}
    return {**rule, "operations": ["CREATE", "UPDATE"], "resources": resources}


def _binding(
    policy: str,
    namespaces: dict[str, Any],
    actions: Sequence[str] = (),
    *,
    name: str = "",
    kind: str = "ValidatingAdmissionPolicyBinding",
    api: str = "v1",
) -> dict[str, Any]:
    done = {"validationActions": list(actions)} if actions else {}
    spec = {"policyName": policy, **done, "matchResources": {"namespaceSelector": namespaces}}
    return _object(kind, name or policy, spec, api)


def _object(kind: str, name: str, spec: dict[str, Any], api: str = "v1") -> dict[str, Any]:
    return {"apiVersion": f"{_GROUP}/{api}", "kind": kind, "metadata": {"name": name}, "spec": spec}
