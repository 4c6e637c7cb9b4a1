"""Judges an object by admission policies as an API server does: variables in their order, then each validation."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_optional
from trainlaunch.formats.quantities import parse_milli_quantity

_DYN, _TEXT, _NUMBER, _BOOL = (cel.Type(each) for each in ("dyn", "string", "int", "bool"))
_NUMBERS = cel.Type.List(_NUMBER)


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


def _whole(quantity: int) -> int:
    """Return a quantity as a number; a server refuses what is none."""
    if quantity % 1000:
        raise ValueError(f"{quantity} thousandths are no integer")
    return quantity // 1000


def _sum(numbers: list[Any]) -> int:
    return sum(each if isinstance(each, int) else each.plain_value() for each in numbers)


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
            cel.FunctionDecl(
                "asInteger", [cel.Overload("quantity_as_int", _NUMBER, [_NUMBER], is_member=True, impl=_whole)]
            ),
            cel.FunctionDecl("sum", [cel.Overload("sum_of_ints", _NUMBER, [_NUMBERS], is_member=True, impl=_sum)]),
        ],
    )


@functools.cache
def _compiled(expression: str) -> cel.Expression:
    return _environment().compile(expression)


def _value(expression: str, data: dict[str, Any]) -> Any:
    found = _compiled(expression).eval(data=data)
    return found.plain_value()


def refusals(
    documents: Iterable[dict[str, Any]], submitted: dict[str, Any], part: str = "", user: str = "alice", **old: Any
) -> list[str]:
    """Return what the policies say of an object that `user` makes, or with `old` changes, in its namespace.

    `part` is the subresource by which it is changed.
    """
    operation = "UPDATE" if old else "CREATE"
    request = {
        "namespace": submitted["metadata"].get("namespace", "default"),
        "operation": operation,
        "userInfo": {"username": user},
        **({"subResource": part} if part else {}),  # a server leaves it out where it is empty
    }
    data = {"object": submitted, "request": request, "oldObject": old.get("old"), "variables": {}}
    matched = [each for each in documents if _matches(each, old.get("old") or submitted, operation, part)]
    return [said for each in matched for said in _judged(each["spec"], data)]


def _matches(document: dict[str, Any], submitted: dict[str, Any], operation: str, part: str) -> bool:
    """Return whether a rule names the request's group, version, operation and resource with its subresource."""
    if document["kind"] != "ValidatingAdmissionPolicy":
        return False
    api, kind = ("kubeflow.org/v1", "PyTorchJob") if part == "scale" else (submitted["apiVersion"], submitted["kind"])
    group, _, version = api.rpartition("/")
    resource = "/".join((f"{kind.lower()}s", *([part] if part else ())))
    rules = document["spec"]["matchConstraints"]["resourceRules"]
    asked = {"apiGroups": group, "apiVersions": version, "operations": operation, "resources": resource}
    return any(all(value in rule[key] for key, value in asked.items()) for rule in rules)


def _judged(spec: dict[str, Any], request: dict[str, Any]) -> Iterator[str]:
    data = {**request, "variables": {}}
    if not all(_value(each["expression"], data) for each in spec.get("matchConditions", ())):
        return
    for each in spec["variables"]:
        data["variables"] = {**data["variables"], each["name"]: _value(each["expression"], data)}
    for each in spec["validations"]:
        if _value(each["expression"], data) is not True:
            yield each["message"]
