"""labelSelector and fieldSelector, with the operators that the API has."""

from __future__ import annotations

import re
from typing import Any

from tests.kubernetes.statuses import bad_request

_SET = re.compile(r"^(?P<key>[\w./-]+)\s+(?P<op>in|notin)\s*\((?P<values>[^)]*)\)$")
_FIELDS = ("metadata.name", "metadata.namespace")
# what each kind can be selected by beyond name and namespace
_FIELDS_OF = {
    "Pod": ("spec.nodeName", "status.phase", "status.podIP", "spec.restartPolicy", "spec.schedulerName"),
    "Event": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "type",
        "reportingComponent",
        "source",
    ),
    "Job": ("status.successful",),
    "Namespace": ("status.phase",),
}


def matches(thing: dict[str, Any], labels: str, fields: str) -> bool:
    """Return whether an object has these labels and fields; raises ApiError where a selector can't be read."""
    return _labels_match(thing["metadata"].get("labels") or {}, labels) and _fields_match(thing, fields)


def check(kind: str, labels: str, fields: str) -> None:
    """Raise ApiError (400) for a selector that the server refuses, whatever there is to select from."""
    _labels_match({}, labels)
    for path, _, _ in _terms(fields):
        if path not in (*_FIELDS, *_FIELDS_OF.get(kind, ())):
            raise bad_request(f"field label not supported: {path}")


def _labels_match(labels: dict[str, str], selector: str) -> bool:
    return all(_label_matches(labels, each.strip()) for each in re.split(r",(?![^(]*\))", selector) if each.strip())


def _label_matches(labels: dict[str, str], term: str) -> bool:
    if found := _SET.match(term):
        values = {each.strip() for each in found["values"].split(",")}
        inside = labels.get(found["key"]) in values
        return inside if found["op"] == "in" else not inside
    for operator in ("!=", "==", "="):
        if operator in term:
            key, _, value = term.partition(operator)
            return (labels.get(key.strip()) == value.strip()) is (operator != "!=")
    if not re.fullmatch(r"!?[\w./-]+", term):
        raise bad_request(f'unable to parse requirement: found "{term}", expected: identifier')
    return (term.lstrip("!") in labels) is not term.startswith("!")


def _fields_match(thing: dict[str, Any], selector: str) -> bool:
    return all((_value(thing, path) == value) is equal for path, value, equal in _terms(selector))


def _terms(selector: str) -> list[tuple[str, str, bool]]:
    found = []
    for term in filter(None, (each.strip() for each in selector.split(","))):
        operator = next((each for each in ("!=", "==", "=") if each in term), None)
        if operator is None:
            raise bad_request(f'invalid selector: "{term}"; can\'t understand "{term}"')
        path, _, value = term.partition(operator)
        found.append((path.strip(), value.strip(), operator != "!="))
    return found


def _value(thing: dict[str, Any], path: str) -> str:
    here: Any = thing
    for part in path.split("."):
        here = here.get(part) if isinstance(here, dict) else None
    return "" if here is None else str(here)
