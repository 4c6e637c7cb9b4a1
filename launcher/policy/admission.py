"""A policy as ValidatingAdmissionPolicies: a cluster enforces what the launcher asks of a job, whoever applies it.

Two of them: one for pods, whoever made them, and one for the objects whose controllers make pods, so that `kubectl
apply` itself is refused. Where the pods of an object stand is what `launcher.kinds` says. The rules are CEL as an API
server of 1.31 and later reads it: optional fields, RE2, and its own `quantity`.
"""

from __future__ import annotations

from typing import Any

from launcher.job.ceilings import Policy
from launcher.kinds import POD, TRAIN_JOB, Kind, Part, objects
from launcher.policy import rules_in_cel as cel
from launcher.yamltree.emitter import comment, yaml_block

NAMESPACE_LABEL = {"trainlaunch.dev/policy": "enforce"}
_API = "admissionregistration.k8s.io/v1"


def admission_documents(policy: Policy | None, *, enforce: bool) -> list[dict[str, Any]]:
    """Return the policies and their bindings; None asks for the rules of /dev/shm alone.

    Without `enforce` an API server warns and writes its audit log. A binding selects the namespaces labelled
    `NAMESPACE_LABEL`, never all: device plugins' validators and inference ask for GPUs too.
    """
    makers = tuple(each for each in objects().values() if each is TRAIN_JOB or each.pod_template)
    return [
        document
        for name, kinds in (("trainlaunch-pods", (POD,)), ("trainlaunch-templates", makers))
        for document in (_policy(name, kinds, policy), _binding(name, enforce))
    ]


def admission_text(policy: Policy | None, *, enforce: bool) -> str:
    """Return those documents as YAML for `kubectl apply -f -`, with what they leave out as comments on top."""
    source = f" from {', '.join(policy.files)}" if policy else ""
    head = [
        f"Written by `trainlaunch policy export`{source}.",
        f"Holds in namespaces with the label {'='.join(next(iter(NAMESPACE_LABEL.items())))}, for pods that carry the",
        "launcher's label or ask for GPUs, and for what makes such pods.",
        *(f"Not here: {each}, which only the launcher sees." for each in _left_out(policy)),
    ]
    comments = "".join(f"# {comment(each)}\n" for each in head)
    documents = (yaml_block(each) for each in admission_documents(policy, enforce=enforce))
    return comments + "---\n".join(f"{each}\n" for each in documents)


def _left_out(policy: Policy | None) -> list[str]:
    """Return the demands that no server can judge."""
    if policy is None:
        return []
    names = [f"max.{name}" for name in ("num_workers",) if name in policy.max]
    seen_by_us = ("allowed_host_paths", "allowed_patch_paths", "allowed_extra_args")
    names += [name for name in seen_by_us if name in policy.allowed]
    return [*names, *(["required"] if policy.required else []), *(["severities"] if policy.severities else [])]


def _policy(name: str, kinds: tuple[Kind | Part, ...], policy: Policy | None) -> dict[str, Any]:
    rules = [*cel.shm_rules(), *(cel.asked_rules(policy, kinds) if policy else ())]
    spec: dict[str, Any] = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [_resource(each) for each in kinds]},
    }
    if POD not in kinds:
        changed = 'request.operation == "CREATE" || object.spec != oldObject.spec'
        spec["matchConditions"] = [{"name": "spec-is-new", "expression": changed}]
    spec["variables"] = [{"name": key, "expression": text} for key, text in cel.variables(kinds).items()]
    said = ((each.expression, f"trainlaunch: {each.message}") for each in rules)
    spec["validations"] = [{"expression": text, "message": message, "reason": "Invalid"} for text, message in said]
    return {"apiVersion": _API, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}


def _resource(each: Kind | Part) -> dict[str, Any]:
    group, _, version = each.api_version.rpartition("/")
    # A pod that runs is changed by its controllers, who must be able to end it.
    operations = ["CREATE"] if each is POD else ["CREATE", "UPDATE"]
    return {"apiGroups": [group], "apiVersions": [version], "operations": operations, "resources": [each.plural]}


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
