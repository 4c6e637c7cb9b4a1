"""A policy as ValidatingAdmissionPolicies: a cluster enforces what the launcher asks of a job, whoever applies it.

Two of them: one for pods, whoever made them, and one for the objects whose controllers make pods, so that `kubectl
apply` itself is refused. The rules are CEL as an API server of 1.31 and later reads it: optional fields, RE2, and its
own `quantity` and `sum`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainlaunch.job.ceilings import Policy
from trainlaunch.kinds import POD, PYTORCH_JOB, AuxiliaryObject, Kind
from trainlaunch.policy import rules_in_cel as cel
from trainlaunch.policy.objects_in_cel import MAKERS, maker_variables, pod_variables
from trainlaunch.yamltree.emitter import comment, yaml_block

NAMESPACE_LABEL = {"trainlaunch.dev/policy": "enforce"}
_API = "admissionregistration.k8s.io/v1"
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
    policy: Policy | None, *, enforce: bool, controllers: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return the policies and their bindings; None asks for the rules of /dev/shm alone.

    Without `enforce` an API server warns and writes its audit log. A binding selects the namespaces labelled
    `NAMESPACE_LABEL`, never all: device plugins' validators and inference ask for GPUs too. `controllers` are users
    that make pods or Jobs of judged objects, besides those of usual installations.
    """
    makers = tuple(each.kind for each in MAKERS)
    return [
        document
        for name, kinds in (("trainlaunch-pods", (POD,)), ("trainlaunch-templates", makers))
        for document in (_policy(name, kinds, policy, controllers), _binding(name, enforce))
    ]


def admission_text(policy: Policy | None, *, enforce: bool, controllers: Sequence[str] = ()) -> str:
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
        *(f"Not here: {each}, which only the launcher sees." for each in _left_out(policy)),
    ]
    comments = "".join(f"# {comment(each)}\n" for each in head)
    documents = (yaml_block(each) for each in admission_documents(policy, enforce=enforce, controllers=controllers))
    return comments + "---\n".join(f"{each}\n" for each in documents)


def _left_out(policy: Policy | None) -> list[str]:
    """Return the demands that no server can judge."""
    if policy is None:
        return []
    names = [f"max.{name}" for name in ("num_workers",) if name in policy.max]
    seen_by_us = ("allowed_patch_paths", "allowed_extra_args")
    names += [name for name in seen_by_us if name in policy.allowed]
    return [*names, *(["required"] if policy.required else []), *(["severities"] if policy.severities else [])]


def _policy(
    name: str, kinds: Sequence[Kind | AuxiliaryObject], policy: Policy | None, controllers: Sequence[str]
) -> dict[str, Any]:
    of_pods = POD in kinds
    rules = [*cel.shm_rules(), *(cel.asked_rules(policy, kinds) if policy else ())]
    variables = (pod_variables if of_pods else maker_variables)(policy, controllers)
    conditions = {"is-new": _IS_NEW, **({"is-no-mirror": _IS_NO_MIRROR} if of_pods else {})}
    said = ((each.expression, f"trainlaunch: {each.message}") for each in rules)
    spec: dict[str, Any] = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": _pod_resources() if of_pods else [_resource(each) for each in kinds]},
        "matchConditions": [{"name": key, "expression": text} for key, text in conditions.items()],
        "variables": [{"name": key, "expression": text} for key, text in variables.items()],
        "validations": [{"expression": text, "message": message, "reason": "Invalid"} for text, message in said],
    }
    return {"apiVersion": _API, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}


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


def _binding(name: str, enforce: bool) -> dict[str, Any]:
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {
            "policyName": name,
            "validationActions": ["Deny"] if enforce else ["Warn", "Audit"],
            "matchResources": {"namespaceSelector": {"matchLabels": NAMESPACE_LABEL}},
        },
    }
