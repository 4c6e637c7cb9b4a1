"""Judges an object by admission policies as an API server does: variables in their order, then each validation."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_optional

from launcher.formats.quantities import parse_milli_quantity

_DYN, _TEXT, _NUMBER, _BOOL = (cel.Type(each) for each in ("dyn", "string", "int", "bool"))


def _quantity(text: str) -> int:
    """Return a quantity in thousandths, as which quantities compare."""
    found = parse_milli_quantity(text)
    if found is None:
        raise ValueError(f"{text} is not a quantity")
    return found


def _compare(name: str, less: bool) -> cel.FunctionDecl:
    def compared(one: int, other: int) -> bool:
        return one < other if less else one > other

    overload = cel.Overload(f"quantity_{name}", _BOOL, [_NUMBER, _NUMBER], is_member=True, impl=compared)
    return cel.FunctionDecl(name, [overload])


@functools.cache
def _environment() -> cel.Env:
    quantity = cel.Overload("quantity_of_text", _NUMBER, [_TEXT], is_member=False, impl=_quantity)
    return cel.NewEnv(
        variables=dict.fromkeys(("object", "oldObject", "request", "variables"), _DYN),
        extensions=[ext_optional.ExtOptional()],
        functions=[
            cel.FunctionDecl("quantity", [quantity]),
            _compare("isLessThan", less=True),
            _compare("isGreaterThan", less=False),
        ],
    )


@functools.cache
def _compiled(expression: str) -> cel.Expression:
    return _environment().compile(expression)


def _value(expression: str, data: dict[str, Any]) -> Any:
    found = _compiled(expression).eval(data=data)
    return found.plain_value()


def refusals(documents: Iterable[dict[str, Any]], submitted: dict[str, Any], **old: Any) -> list[str]:
    """Return what the policies say of an object that is made, or with `old` changed, in its namespace."""
    return [said for each in documents if _matches(each, submitted) for said in _judged(each["spec"], submitted, old)]


def _matches(document: dict[str, Any], submitted: dict[str, Any]) -> bool:
    if document["kind"] != "ValidatingAdmissionPolicy":
        return False
    group, _, version = submitted["apiVersion"].rpartition("/")
    rules = document["spec"]["matchConstraints"]["resourceRules"]
    plural = f"{submitted['kind'].lower()}s"
    return any(
        (group, version, plural) == (*each["apiGroups"], *each["apiVersions"], *each["resources"]) for each in rules
    )


def _judged(spec: dict[str, Any], submitted: dict[str, Any], old: dict[str, Any]) -> Iterator[str]:
    namespace = submitted["metadata"].get("namespace", "default")
    request = {"namespace": namespace, "operation": "UPDATE" if old else "CREATE"}
    data: dict[str, Any] = {"object": submitted, "request": request, "oldObject": old.get("old"), "variables": {}}
    if not all(_value(each["expression"], data) for each in spec.get("matchConditions", ())):
        return
    for each in spec["variables"]:
        data["variables"] = {**data["variables"], each["name"]: _value(each["expression"], data)}
    for each in spec["validations"]:
        if _value(each["expression"], data) is not True:
            yield each["message"]
