"""What the API server refuses after decoding: names, labels, containers, volumes, quantities. Field by field.

The rules that a rendered object can break, worded as the server words them; not all rules that there are.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

from tests.kubernetes.kinds import CONFIG_MAPS, JOBS, PODS, SERVICES, Resource
from tests.kubernetes.schemas import quantity
from tests.kubernetes.statuses import Cause

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
SERVICE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_INTEGERS = ("cpu", "memory", "ephemeral-storage")


def problems(resource: Resource, thing: dict[str, Any]) -> list[Cause]:
    """Return every field that is wrong, in the order of the server."""
    found = list(_metadata(thing["metadata"], "metadata"))
    spec = thing.get("spec") or {}
    if resource == PODS:
        found += _pod(spec, "spec", job=False)
    elif resource == JOBS:
        found += _job(thing["metadata"].get("name", ""), spec)
    elif resource == CONFIG_MAPS:
        found += _config_map(thing)
    elif resource == SERVICES and not SERVICE.fullmatch(thing["metadata"].get("name", "")):
        found.append(
            invalid("metadata.name", thing["metadata"].get("name"), "a DNS-1035 label must start with a letter")
        )
    return found


def _config_map(thing: dict[str, Any]) -> Iterator[Cause]:
    texts, binary = thing.get("data") or {}, thing.get("binaryData") or {}
    for field, keys in (("data", texts), ("binaryData", binary)):
        for key in keys:
            if len(key) > 253 or not re.fullmatch(r"[-._a-zA-Z0-9]+", key) or key == "." or key.startswith(".."):
                yield invalid(f"{field}[{key}]", key, "a valid config key must consist of alphanumeric characters")
            if key in texts and key in binary:
                yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    size = sum(len(each.encode()) for each in texts.values())
    size += sum(len(base64.b64decode(each, validate=True)) for each in binary.values())
    if size > 1 << 20:
        yield Cause("FieldValueTooLong", "Too long: may not be more than 1048576 bytes", "")


def invalid(field: str, value: object, why: str) -> Cause:
    """Return a cause as `field.Invalid` gives it."""
    return Cause("FieldValueInvalid", f"Invalid value: {_shown(value)}: {why}", field)


def required(field: str, why: str = "") -> Cause:
    """Return a cause as `field.Required` gives it."""
    return Cause("FieldValueRequired", f"Required value: {why}" if why else "Required value", field)


def unsupported(field: str, value: object, known: tuple[str, ...]) -> Cause:
    """Return a cause as `field.NotSupported` gives it."""
    listed = ", ".join(_shown(each) for each in sorted(known))
    return Cause("FieldValueNotSupported", f"Unsupported value: {_shown(value)}: supported values: {listed}", field)


def _shown(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _metadata(meta: dict[str, Any], path: str) -> Iterator[Cause]:
    name = meta.get("name", "")
    if not name and not meta.get("generateName"):
        yield required(f"{path}.name", "name or generateName is required")
    elif name and (len(name) > 253 or not SUBDOMAIN.fullmatch(name)):
        yield invalid(
            f"{path}.name", name, _SUBDOMAIN_RULE if len(name) <= 253 else "must be no more than 253 characters"
        )
    yield from _labels(meta.get("labels") or {}, f"{path}.labels")
    for key in meta.get("annotations") or {}:
        yield from _label_key(key, f"{path}.annotations")
    total = sum(len(key) + len(value) for key, value in (meta.get("annotations") or {}).items())
    if total > 262144:
        yield Cause("FieldValueTooLong", "Too long: may not be more than 262144 bytes", f"{path}.annotations")


def _labels(labels: dict[str, str], path: str) -> Iterator[Cause]:
    for key, value in labels.items():
        yield from _label_key(key, path)
        if len(value) > 63:
            yield invalid(path, value, "must be no more than 63 bytes")
        if not VALUE.fullmatch(value):
            yield invalid(path, value, _VALUE_RULE)


def _label_key(key: str, path: str) -> Iterator[Cause]:
    prefix, slash, name = key.rpartition("/")
    if slash and not SUBDOMAIN.fullmatch(prefix):
        yield invalid(path, key, f"prefix part {_SUBDOMAIN_RULE}")
    if len(name) > 63:
        yield invalid(path, key, "name part must be no more than 63 bytes")
    if not QUALIFIED.fullmatch(name):
        yield invalid(path, key, "name part must consist of alphanumeric characters, '-', '_' or '.'")


def _job(name: str, spec: dict[str, Any]) -> Iterator[Cause]:
    if len(name) > 63:
        yield invalid("spec.template.labels", name, "must be no more than 63 bytes")
    for key in ("backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "parallelism", "completions"):
        if spec.get(key) is not None and spec[key] < 0:
            yield invalid(f"spec.{key}", spec[key], "must be greater than or equal to 0")
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        yield required("spec.completions", "when completion mode is Indexed")
    template = spec.get("template") or {}
    yield from _labels((template.get("metadata") or {}).get("labels") or {}, "spec.template.metadata.labels")
    pod = template.get("spec") or {}
    names = [each.get("name") for each in pod.get("containers") or []]
    for index, rule in enumerate((spec.get("podFailurePolicy") or {}).get("rules", [])):
        yield from _failure_rule(rule, f"spec.podFailurePolicy.rules[{index}]", names)
    if spec.get("podFailurePolicy") and pod.get("restartPolicy") != "Never":
        yield invalid(
            "spec.template.spec.restartPolicy",
            pod.get("restartPolicy"),
            'only "Never" is supported when podFailurePolicy is specified',
        )
    yield from _pod(pod, "spec.template.spec", job=True)


def _failure_rule(rule: dict[str, Any], path: str, containers: list[str]) -> Iterator[Cause]:
    codes = rule.get("onExitCodes")
    if codes is None:
        return
    values = codes.get("values", [])
    if codes.get("containerName") and codes["containerName"] not in containers:
        yield invalid(
            f"{path}.onExitCodes.containerName",
            codes["containerName"],
            "must be one of the container or initContainer names in the pod template",
        )
    if values != sorted(values):
        yield invalid(f"{path}.onExitCodes.values", values, "must be ordered")
    if codes.get("operator") == "In" and 0 in values:
        yield invalid(f"{path}.onExitCodes.values[{values.index(0)}]", 0, "must not be 0 for the In operator")


def _pod(spec: dict[str, Any], path: str, *, job: bool) -> Iterator[Cause]:
    volumes = [each.get("name") for each in spec.get("volumes") or []]
    for index, volume in enumerate(spec.get("volumes") or []):
        where = f"{path}.volumes[{index}]"
        if volumes.index(volume.get("name")) != index:
            yield Cause("FieldValueDuplicate", f"Duplicate value: {_shown(volume.get('name'))}", f"{where}.name")
        limit = (volume.get("emptyDir") or {}).get("sizeLimit")
        if limit is not None and quantity(limit) < 0:
            yield Cause("FieldValueForbidden", "Forbidden: SizeLimit field must be a valid resource quantity", where)
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or []):
            yield from _container(container, f"{path}.{kind}[{index}]", volumes)
    policies = ("OnFailure", "Never") if job else ("Always", "OnFailure", "Never")
    policy = spec.get("restartPolicy")
    if (job and policy in {None, "Always"}) or (policy is not None and policy not in policies):
        yield unsupported(f"{path}.restartPolicy", policy or "Always", policies)
    yield from _ids(spec.get("securityContext") or {}, f"{path}.securityContext")
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        yield invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than or equal to 0")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        yield invalid(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    for key, value in (spec.get("nodeSelector") or {}).items():
        yield from _labels({key: value}, f"{path}.nodeSelector")
    for index, each in enumerate(spec.get("tolerations") or []):
        if each.get("effect") not in {None, "", "NoSchedule", "PreferNoSchedule", "NoExecute"}:
            known = ("NoSchedule", "PreferNoSchedule", "NoExecute")
            yield unsupported(f"{path}.tolerations[{index}].effect", each["effect"], known)


def _ids(context: dict[str, Any], path: str) -> Iterator[Cause]:
    named = [(key, context.get(key)) for key in ("runAsUser", "runAsGroup", "fsGroup")]
    groups = enumerate(context.get("supplementalGroups") or [])
    for key, value in (*named, *((f"supplementalGroups[{index}]", each) for index, each in groups)):
        if value is not None and not 0 <= value < 2**31:
            yield invalid(f"{path}.{key}", value, "must be between 0 and 2147483647, inclusive")


def _container(container: dict[str, Any], path: str, volumes: list[str]) -> Iterator[Cause]:
    name = container.get("name", "")
    if not name:
        yield required(f"{path}.name")
    elif len(name) > 63 or not LABEL.fullmatch(name):
        yield invalid(f"{path}.name", name, _LABEL_RULE)
    if not container.get("image"):
        yield required(f"{path}.image")
    elif container["image"] != container["image"].strip():
        yield invalid(f"{path}.image", container["image"], "must not have leading or trailing whitespace")
    if container.get("imagePullPolicy") not in {None, "Always", "IfNotPresent", "Never"}:
        known = ("Always", "IfNotPresent", "Never")
        yield unsupported(f"{path}.imagePullPolicy", container["imagePullPolicy"], known)
    for index, each in enumerate(container.get("env") or []):
        if not each.get("name"):
            yield required(f"{path}.env[{index}].name")
        elif "=" in each["name"] or not each["name"].isascii() or not each["name"].isprintable():
            why = "a valid environment variable name must consist only of printable ASCII characters other than '='"
            yield invalid(f"{path}.env[{index}].name", each["name"], why)
        if each.get("value") and each.get("valueFrom"):
            yield invalid(f"{path}.env[{index}].valueFrom", "", "may not be specified when `value` is not empty")
    yield from _mounts(container.get("volumeMounts") or [], f"{path}.volumeMounts", volumes)
    yield from _resources(container.get("resources") or {}, f"{path}.resources")


def _mounts(mounts: list[dict[str, Any]], path: str, volumes: list[str]) -> Iterator[Cause]:
    targets: set[str] = set()
    for index, each in enumerate(mounts):
        if each.get("name") not in volumes:
            yield Cause("FieldValueNotFound", f"Not found: {_shown(each.get('name'))}", f"{path}[{index}].name")
        if not each.get("mountPath"):
            yield required(f"{path}[{index}].mountPath")
        elif each["mountPath"] in targets:
            yield invalid(f"{path}[{index}].mountPath", each["mountPath"], "must be unique")
        targets.add(each.get("mountPath", ""))


def _resources(resources: dict[str, Any], path: str) -> Iterator[Cause]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for kind, listed in (("limits", limits), ("requests", requests)):
        for name, amount in listed.items():
            if "/" not in name and name not in _INTEGERS and not name.startswith("hugepages-"):
                yield invalid(f"{path}.{kind}", name, "must be a standard resource for containers")
            if quantity(amount) < 0:
                yield invalid(f"{path}.{kind}[{name}]", amount, "must be greater than or equal to 0")
            elif "/" in name and quantity(amount) % 1:
                yield invalid(f"{path}.{kind}[{name}]", amount, "must be an integer")
    for name, amount in requests.items():
        if name in limits and quantity(amount) > quantity(limits[name]):
            why = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid(f"{path}.requests", str(amount), why)
        elif "/" in name and name in limits and quantity(amount) != quantity(limits[name]):
            yield invalid(f"{path}.requests", str(amount), f"must be equal to {name} limit of {limits[name]}")
        elif "/" in name and name not in limits:
            yield required(f"{path}.limits", f"Limit must be set for non overcommitable resources: {name}")
