"""Does with an object what an API server does by admission policies: repairs it, and says what it has against it.

Expressions are evaluated by cel-expr-python, which the extra `cel` brings. It has neither quantities nor a server's own
types, so the former are thousandths here, and a mutation is one that makes maps.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trainlaunch.formats.quantities import parse_milli_quantity

Document = Mapping[str, Any]


class ExpressionFailed(Exception):
    """An expression has no value for an object, in words of CEL."""


class Request(NamedTuple):
    """Who asks for what: `part` is the subresource by which `old` is changed, and `labels` are the namespace's."""

    submitted: Mapping[str, Any]
    user: str = "alice"
    part: str = ""
    old: Mapping[str, Any] | None = None
    labels: Mapping[str, str] = {}

    @property
    def operation(self) -> str:
        """What is done with the object."""
        return "CREATE" if self.old is None else "UPDATE"

    def data(self) -> dict[str, Any]:
        """Return what expressions see."""
        namespace = (self.submitted.get("metadata") or {}).get("namespace", "default")
        request = {
            "namespace": namespace,
            "operation": self.operation,
            "userInfo": {"username": self.user},
            **({"subResource": self.part} if self.part else {}),  # a server leaves it out where it is empty
        }
        space = {"metadata": {"name": namespace, "labels": dict(self.labels)}}
        seen = {"object": self.submitted, "request": request, "namespaceObject": space}
        # Each None that cel-expr-python is given is one fewer in the interpreter, which dies of the last.
        return seen if self.old is None else {**seen, "oldObject": self.old}


def refusals(documents: Iterable[Document], request: Request) -> list[tuple[str, str]]:
    """Return what validating policies say of an object, each sentence with the policy's name, bound or not."""
    return [
        (policy["metadata"]["name"], said)
        for policy in documents
        if policy["kind"] == "ValidatingAdmissionPolicy" and _matches(policy, request)
        for said in _refusals(policy["spec"], request.data())
    ]


def repaired(policy: Document, mutation: str, request: Request) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return an object after a mutating policy, and the values of its variables; `mutation` stands for its own.

    Raises ExpressionFailed where the object's fields are not of the types that expressions take them for.
    """
    data = request.data()
    variables = _variables(policy["spec"], data)
    made = copy.deepcopy(dict(request.submitted))
    for operation in _value(mutation, {**data, "variables": variables}):
        _add(made, operation["path"], copy.deepcopy(operation["value"]))
    return made, variables


def _add(made: Any, pointer: str, value: Any) -> None:
    """Carry out the one kind of operation that a repair has."""
    *above, last = (each.replace("~1", "/").replace("~0", "~") for each in pointer[1:].split("/"))
    for each in above:
        made = made[int(each)] if isinstance(made, list) else made[each]
    if isinstance(made, list):
        made.append(value)
    else:
        made[last] = value


def _matches(policy: Document, request: Request) -> bool:
    """Return whether a rule names the request's group, version, operation and resource with its subresource."""
    about = request.old or request.submitted
    is_scale = request.part == "scale"
    api, kind = ("kubeflow.org/v1", "PyTorchJob") if is_scale else (about["apiVersion"], about["kind"])
    group, _, version = api.rpartition("/")
    resource = "/".join((f"{kind.lower()}s", *([request.part] if request.part else ())))
    asked = {"apiGroups": group, "apiVersions": version, "operations": request.operation, "resources": resource}
    rules = policy["spec"]["matchConstraints"]["resourceRules"]
    return any(all(value in rule[key] for key, value in asked.items()) for rule in rules)


def _refusals(spec: Document, data: dict[str, Any]) -> Iterator[str]:
    if not all(_value(each["expression"], {**data, "variables": {}}) for each in spec.get("matchConditions", ())):
        return
    seen = {**data, "variables": _variables(spec, data)}
    for each in spec["validations"]:
        try:
            if _value(each["expression"], seen) is True:
                continue
            words = each.get("messageExpression")
            yield each["message"] if words is None else _value(words, seen)
        except ExpressionFailed as error:
            yield str(error)  # a server denies what it can't judge


def _variables(spec: Document, data: dict[str, Any]) -> dict[str, Any]:
    """Return the variables that have a value; a server asks for one only where another expression does."""
    found: dict[str, Any] = {}
    for each in spec["variables"]:
        try:
            found[each["name"]] = _value(each["expression"], {**data, "variables": found})
        except ExpressionFailed:
            continue
    return found


def _value(expression: str, data: dict[str, Any]) -> Any:
    found = _compiled(expression).eval(data=data)
    if str(found.type()) == "ERROR":
        raise ExpressionFailed(str(found.plain_value()))
    return found.plain_value()


@functools.cache
def _compiled(expression: str) -> Any:
    return _environment().compile(expression)


@functools.cache
def _environment() -> Any:
    from cel_expr_python import cel  # no other command needs it
    from cel_expr_python.ext import ext_optional

    types = {each: cel.Type(each) for each in ("dyn", "string", "int", "bool", "map")}
    lists = {name: cel.Type.List(each) for name, each in types.items()}

    def function(name: str, result: str, takes: Sequence[Any], does: Any, member: bool = True) -> Any:
        overload = cel.Overload(f"{name}_of", types[result], list(takes), is_member=member, impl=does)
        return cel.FunctionDecl(name, [overload])

    number = types["int"]
    return cel.NewEnv(
        variables=dict.fromkeys(("object", "oldObject", "request", "namespaceObject", "variables"), types["dyn"]),
        extensions=[ext_optional.ExtOptional()],  # its strings have an indexOf, as a server's lists do
        functions=[
            function("quantity", "int", [types["string"]], _quantity, member=False),
            function("isLessThan", "bool", [number, number], lambda one, other: one < other),
            function("isGreaterThan", "bool", [number, number], lambda one, other: one > other),
            function("isInteger", "bool", [number], lambda quantity: quantity % 1000 == 0),
            function("asInteger", "int", [number], _whole),
            function("sum", "int", [lists["int"]], lambda numbers: sum(_plain(numbers))),
            function("join", "string", [lists["string"], types["string"]], lambda texts, by: by.join(_plain(texts))),
            function("indexOf", "int", [lists["map"], types["map"]], lambda all_, one: _plain(all_).index(_plain(one))),
        ],
    )


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.plain_value() if hasattr(value, "plain_value") else value


def _quantity(text: str) -> int:
    """Return a quantity in thousandths, as which quantities compare."""
    found = parse_milli_quantity(text)
    if found is None:
        raise ValueError(f"{text} is not a quantity")
    return found


def _whole(quantity: int) -> int:
    """Return a quantity as a number; a server refuses what is none."""
    if quantity % 1000:
        raise ValueError(f"{quantity} thousandths are no integer")
    return quantity // 1000
