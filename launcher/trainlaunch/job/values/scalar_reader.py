"""Reads one scalar by its type: refuses what only looks like it, and names the value to type instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from trainlaunch.diagnostics import Report
from trainlaunch.did_you_mean import closest
from trainlaunch.job.fields.types import Type, spell
from trainlaunch.sanitize import shorten
from trainlaunch.units import UnreadableValue, parse_cpus, parse_duration, parse_size
from trainlaunch.yamltree.strict import MappingNode, Node, ScalarNode, SequenceNode

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_FRACTION = r"-?(?:0|[1-9][0-9]*)\.[0-9]+"
_BOOLEANS = {"true": True, "false": False}
# Numbers, booleans and nothing in YAML 1.1, 1.2 or another reader, strings in the rest.
_LOOK_ALIKE = (
    r"(?i)y|yes|n|no|on|off|true|false|[-+]?\.(?:inf|nan)|[-+]?0[xob][0-9a-f_]+|[-+]?[0-9][0-9_,]*(?::[0-5]?[0-9])*"
    r"|[-+]?[0-9_]*(?:\.[0-9_]*)?(?:e[-+]?[0-9]+)?|=|<<|\?|-|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?"
)


class _Bad:
    """The value of what can't be read."""

    def __repr__(self) -> str:
        return "BAD"


BAD: Any = _Bad()
MAX_NAMED = 8  # choices that a message lists beside the one that its fix names
MAX_NUMBER_LENGTH = 24  # characters; no size, count or duration in bounds needs more

_STATED = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_MEANT_TRUE = frozenset({"yes", "y", "on", "1"})
_MEANT_FALSE = frozenset({"no", "n", "off", "0"})
_MEANT_BOOL = _MEANT_TRUE | _MEANT_FALSE | {"true", "false"}
_READ_APART = "readers of YAML take this spelling for different values"
# torch's and Kubernetes' other words for choices of ours.
_OTHER_WORDS = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "byte": "uint8",
    "uint": "uint32",
    "fp64": "float64",
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f16": "float16",
    "tf32": "float32",
    "fp8": "float8_e4m3fn",
    "float8": "float8_e4m3fn",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "boolean": "bool",
    "ifnotpresent": "missing",
}


def quoted(text: str) -> str:
    """Return `text` in double quotes, cut after 60 characters."""
    import json  # only on the way to an error

    short = text if len(text) <= 60 else text[:59] + "…"
    return json.dumps(short, ensure_ascii=False)


def _digits(name: str) -> list[str]:
    return re.findall(r"\d", name)


def article_of(type_: Type) -> str:
    """Return what a type asks for, in words."""
    return f"auto or {type_.what}" if type_.auto else type_.what


class ScalarReader:
    """Reads text, int, bool, size, cpus, duration and choice."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def read(self, type_: Type, node: ScalarNode, path: str) -> Any:
        """Return the value, None for `auto`, or BAD once the report says why."""
        if type_.auto and node.text == "auto":
            return None
        return _READERS.get(type_.kind, ScalarReader._quantity)(self, type_, node, path)

    def _text(self, type_: Type, node: ScalarNode, path: str) -> Any:
        if not type_.pattern or re.fullmatch(type_.pattern, node.text):
            return node.text
        secret = path.startswith("secrets.")  # someone may have put the secret itself there
        found = "a text" if secret else quoted(node.text)
        why = "a job file holds references to secrets, never a secret itself" if secret else ""
        fix = f"write {type_.what}" if secret else _better(type_, node.text, path)
        return self._refuse(node, path, f"{path} is {found}; expected {type_.what}", fix=fix, why=why)

    def _int(self, type_: Type, node: ScalarNode, path: str) -> Any:
        if node.plain and re.fullmatch(r"-?(?:0|[1-9][0-9]*)", node.text) and len(node.text) <= MAX_NUMBER_LENGTH:
            return self._bounded(type_, node, path, value=int(node.text))
        meant = _meant_int(node.text)
        return self._look_alike(
            type_,
            node,
            path,
            fix=f"write {meant}" if meant else f"write {article_of(type_)}, like {max(type_.low or 0, 1)}",
        )

    def _bool(self, type_: Type, node: ScalarNode, path: str) -> Any:
        if node.plain and node.text in _STATED:
            return _STATED[node.text]
        lower = node.text.lower()
        if lower in _MEANT_TRUE or lower == "true":
            fix = "write true"
        else:
            fix = "write false" if lower in _MEANT_FALSE or lower == "false" else "write true or false"
        return self._look_alike(type_, node, path, fix=fix)

    def _look_alike(self, type_: Type, node: ScalarNode, path: str, *, fix: str) -> Any:
        spelled = node.text if node.plain else f"the string {quoted(node.text)}"
        spelled = quoted(node.text) if node.plain and len(node.text) > 60 else spelled
        alike = re.search("[0-9]", node.text) or node.text.lower() in _MEANT_BOOL
        why = "quotes make it a string" if not node.plain else _READ_APART if alike else ""
        return self._refuse(
            node, path, f"{path} is {spelled}; expected {article_of(type_)}", fix=fix, why=why, code="TL105"
        )

    def _choice(self, type_: Type, node: ScalarNode, path: str) -> Any:
        if node.text in type_.choices:
            return node.text
        meant = _OTHER_WORDS.get(node.text.lower().removeprefix("torch."), node.text.lower().removeprefix("torch."))
        # Of many names one with a few letters in common, or of another width, is another type, not a misspelt one.
        many = len(type_.choices) > MAX_NAMED
        alike = [each for each in type_.choices if not many or _digits(each) == _digits(meant)]
        close = closest(meant[:64], alike, cutoff=0.8 if many else 0.6)
        takes = f"one of {len(type_.choices)} names" if many else ", ".join(type_.choices)
        names = ", ".join(type_.choices) if many else " or ".join(type_.choices)
        return self._refuse(
            node,
            path,
            f"{path} is {quoted(node.text)}; it takes {takes}",
            fix=f"write {close or (f'one of {names}' if many else names)}",
        )

    def _quantity(self, type_: Type, node: ScalarNode, path: str) -> Any:
        parse = {"size": parse_size, "cpus": parse_cpus, "duration": parse_duration}[type_.kind]
        code = "TL108" if type_.kind == "size" else "TL107"
        if type_.kind == "size" and re.fullmatch(r"-?0+", node.text):
            return self._bounded(type_, node, path, value=0)
        if len(node.text) > MAX_NUMBER_LENGTH or not node.text.isascii():
            example = {"size": "512Mi or 8Gi", "cpus": "4, 1.5 or 500m", "duration": "30s, 5m or 1h30m"}[type_.kind]
            return self._refuse(
                node,
                path,
                f"{path} is {quoted(node.text)}; expected {article_of(type_)}",
                fix=f"write {example}",
                code=code,
            )
        try:
            value = parse(node.text)
        except UnreadableValue as error:
            also = ", or auto" if type_.auto else ""
            return self._refuse(node, path, f"{path}: {error}", fix=error.fix + also, code=code)
        return self._bounded(type_, node, path, value=value)

    def _bounded(self, type_: Type, node: ScalarNode, path: str, *, value: int) -> Any:
        low, high = type_.low, type_.high
        code = "TL108" if type_.kind == "size" else "TL107"
        if low is not None and value < low:
            bound, side = low, "least"
        elif high is not None and value > high:
            bound, side = high, "most"
        else:
            return value
        why = ""
        if path == "shm_size" and value == 0:
            why = "0 is 64 MiB in Docker and no limit at all in Podman and Kubernetes"
        return self._refuse(
            node,
            path,
            f"{path} is {node.text}; the {side} is {spell(type_, bound)}",
            fix="write auto" if type_.auto else f"write {spell(type_, bound)}",
            why=why,
            code=code,
        )

    def _refuse(
        self, node: ScalarNode, path: str, message: str, *, fix: str, why: str = "", code: str = "TL107"
    ) -> Any:
        self._report.add(code, node, message=message, fix=fix, why=why, field=path)
        return BAD


_READERS: Mapping[str, Callable[[ScalarReader, Type, ScalarNode, str], Any]] = {
    "text": ScalarReader._text,
    "int": ScalarReader._int,
    "bool": ScalarReader._bool,
    "choice": ScalarReader._choice,
}


def _meant_int(text: str) -> str | None:
    """Return the integer that a look-alike probably means, in plain digits."""
    plain = text.strip().replace("_", "")
    if len(plain) > MAX_NUMBER_LENGTH or not plain.isascii():
        return None
    if re.fullmatch(r"[+-]?[0-9]+", plain):
        return str(int(plain))
    if re.fullmatch(r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)", plain):
        return str(int(plain, 0))
    if re.fullmatch(r"[0-9]+(?:\.[0-9]*)?(?:[eE]\+?[0-9])?", plain) and float(plain).is_integer():
        return str(int(float(plain)))
    return None


def _better(type_: Type, text: str, path: str) -> str:
    """Return the nearest text that the pattern takes, where one is plain to see."""
    candidates = [text.strip(), text.lower()]
    if path == "name":
        candidates.append(re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:63].rstrip("-"))
    if path == "image":
        candidates += [re.sub(r"^[a-z]+://", "", text), re.sub(r"^[a-z]+://", "", text.lower())]
    if path == "working_dir":
        return "write the folder as the container has it, like /workspace, and mount yours there: " + (
            f"mounts: [{{type: bind, source: {shorten(text) or '.'}, target: /workspace}}]"
        )
    if type_.what == "an absolute path" and not re.search(r"[\\:~]", text):
        candidates.append(f"/{text.removeprefix('./')}")
    close = next((each for each in candidates if len(each) < 200 and re.fullmatch(type_.pattern, each)), None)
    return f"write {close}" if close else f"write {type_.what}"


def plain_value(node: Node, path: str, report: Report) -> Any:
    """Return `node` as dicts, lists, strings, numbers, booleans and None; an ambiguous scalar is put in `report`."""
    if isinstance(node, MappingNode):
        return {name: plain_value(value, f"{path}.{name}", report) for name, (_, value) in node.items.items()}
    if isinstance(node, SequenceNode):
        return [plain_value(each, f"{path}.{index}", report) for index, each in enumerate(node.items)]
    return _scalar(node, path, report)


def _scalar(node: ScalarNode, path: str, report: Report) -> Any:
    if not node.plain:
        return node.text
    if node.null:
        return None
    if node.text in _BOOLEANS:
        return _BOOLEANS[node.text]
    if _INTEGER.fullmatch(node.text):
        return int(node.text)
    if re.fullmatch(_FRACTION, node.text):
        return float(node.text)
    if re.fullmatch(_LOOK_ALIKE, node.text):
        report.add(
            "TL105",
            node,
            message=f"{path} is {node.text}, which one reader of YAML takes for a string and another doesn't",
            fix=f"write {quoted(node.text)} for the string, or a number in plain digits, true or false",
            field=path,
        )
        return BAD
    return node.text
