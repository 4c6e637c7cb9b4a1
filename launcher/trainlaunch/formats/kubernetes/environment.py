"""The variables of a container, and the texts that refer to them, `$(NAME)` undone as the kubelet does it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Mapping as ReadOnly
from typing import NamedTuple

from trainlaunch.formats.kubernetes.fields import Fields, is_null, templated, text_of, unknown
from trainlaunch.formats.workload import Known, Unknown, Value
from trainlaunch.yamltree.tolerant import Mapping, Node, Sequence

_DOLLAR = re.compile(r"\$(?:(\$)|\(([^)]*)(\))?)")  # a reference that nothing closes reaches to the end


class ContainerEnvironment(NamedTuple):
    """Variables by name: `values` that the text sets, and the `secrets` whose values come from a source of theirs.

    Of a variable that stands twice the last entry counts; `others` has the one before it, by `NAME twice`, and what is
    no variable. `open`: a ConfigMap or Secret may bring more of them. `refused` are values that Kubernetes refuses.
    """

    values: dict[str, Value[str]]
    secrets: dict[str, str]
    others: dict[str, object]
    open: bool
    refused: dict[str, str]

    def expand(self, text: str) -> str | None:
        """Return a text as the kubelet passes it on; None where it refers to a value that the text doesn't set."""
        if "$" not in text:
            return text
        return None if any(self._undecided(name) for name in references(text)) else self.static(text)

    def static(self, text: str) -> str:
        """Return a probe's text as the kubelet passes it on: it has the variables of the container alone."""
        if "$" not in text:
            return text
        known = {name: value.value for name, value in self.values.items() if isinstance(value, Known)}
        return expanded(text, known)

    def _undecided(self, name: str) -> bool:
        if name in self.values:
            return not isinstance(self.values[name], Known)
        return name in self.secrets or self.open


def read_environment(container: Fields, *, final: bool) -> ContainerEnvironment:
    """Take the variables of a container; each value is expanded with those before it."""
    bulk = container.peek("envFrom")
    env = ContainerEnvironment({}, {}, {}, isinstance(bulk, Sequence) and bool(bulk.items), {})
    listed = container.peek("env")
    if isinstance(listed, Sequence):
        container.take("env")
        for index, node in enumerate(listed.items):
            _read_entry(env, node, index, final=final)
    return env


def _read_entry(env: ContainerEnvironment, node: Node, index: int, *, final: bool) -> None:
    entry = Fields(node, final=final)
    name = entry.pop_str("name")
    if not isinstance(name, Known):
        env.others[str(index)] = node.raw
        return
    key = name.value
    if key in env.values or key in env.secrets:
        env.others[f"{key} twice"] = node.raw
        env.values.pop(key, None)
        env.secrets.pop(key, None)
    source = _source(entry.peek("valueFrom"), final=final)
    if source and entry.names() == ("valueFrom",):
        env.secrets[key] = source
        return
    value = entry.pop_str("value")
    env.refused.update(
        (f"refused container.env.{key}", str(raw)) for path, raw in entry.rest("") if path == "refused value"
    )
    if any(not is_null(each) for each in map(entry.peek, entry.names()) if each is not None):
        env.values[key] = unknown(node)
    elif value is None:
        end = name.span._replace(line=name.span.end_line, column=name.span.end_column)
        env.values[key] = Known("", "", end)
    else:
        env.values[key] = _expanded(env, value)


def _expanded(env: ContainerEnvironment, value: Known[str] | Unknown) -> Value[str]:
    if isinstance(value, Unknown):
        return value
    text = env.expand(value.value)
    return Unknown(value.text, value.span) if text is None else Known(text, value.text, value)


def _source(node: Node | None, *, final: bool) -> str | None:
    """Return where a value comes from: `name/key` of a Secret, or `field PATH`; None for any other source."""
    if not isinstance(node, Mapping) or len(node.pairs) != 1:
        return None
    fields = Fields(node, final=final)
    if "secretKeyRef" in fields:
        reference = fields.within("secretKeyRef")
        secret, key = reference.pop_str("name"), reference.pop_str("key")
        if not isinstance(secret, Known) or not isinstance(key, Known):
            return None
        # An optional one would start the container without it.
        others = "".join(f", {name} {value}" for name, value in reference.rest(""))
        return f"{secret.value}/{key.value}{others}"
    reference = fields.within("fieldRef")
    path = reference.pop_str("fieldPath")
    return f"field {path.value}" if isinstance(path, Known) and not reference.names() else None


def refuses(node: Node | None, *, final: bool) -> bool:
    """Return whether Kubernetes refuses what stands for a list of strings, and no template makes one of it."""
    if node is None or is_null(node) or (not final and templated(node.raw)):
        return False
    return not isinstance(node, Sequence) or not all(
        isinstance(text_of(each, final=True), Known) for each in node.items
    )


def words(node: Node | None, env: ContainerEnvironment, *, final: bool) -> Value[tuple[str, ...]]:
    """Return the words of a list of strings, expanded: Unknown where one of them is, or where it is no list."""
    if node is None or is_null(node):
        return None
    if not isinstance(node, Sequence):
        return unknown(node)
    if not node.items:
        return None  # as if it was not there: the image's own
    found: list[str] = []
    for each in node.items:
        value = text_of(each, final=final)
        text = env.expand(value.value) if isinstance(value, Known) else None
        if text is None:
            return unknown(node)
        found.append(text)
    start, end = min(each.start for each in node.items), max(each.end for each in node.items)
    return Known(tuple(found), node.source.text[start:end], node.source.span(start, end))


def expanded(text: str, variables: ReadOnly[str, str]) -> str:
    """Return `text` as the kubelet passes it on: `$$` is one dollar anywhere, `$(NAME)` its value if it has one.

    Values are put in as they are and not expanded again.
    """
    if "$" not in text:
        return text

    def read(match: re.Match[str]) -> str:
        return variables.get(match[2], match[0]) if match[3] else match[0].replace("$$", "$")

    return _DOLLAR.sub(read, text)


def references(text: str) -> Iterator[str]:
    """Yield the name in each `$(NAME)`, whether or not it is a variable."""
    for match in _DOLLAR.finditer(text):
        if match[3]:
            yield match[2]
