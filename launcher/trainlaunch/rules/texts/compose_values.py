"""Values that YAML, Compose or an API server reads as something else than their author."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from trainlaunch.diagnostics import Edit, Severity
from trainlaunch.formats.compose.values import pieces, spelled
from trainlaunch.formats.kubernetes.fields import is_null
from trainlaunch.formats.workload import Known
from trainlaunch.rules.base.rule import Problem
from trainlaunch.rules.base.text_rule import container_rule, text_rule
from trainlaunch.rules.sources.env_files import named_beside
from trainlaunch.rules.sources.source_text import (
    COMPOSE,
    KUBERNETES,
    SourceContainer,
    SourceText,
    at,
    below,
    entries_in,
    items_in,
    text_at,
)
from trainlaunch.yamltree.scalars import value_of
from trainlaunch.yamltree.tolerant import Node, Scalar, Sequence

_NAME = re.compile(r"\$\{?(\w+)\}?")
_REFUSED = re.compile(r"\$\{(?:(?![A-Za-z_])|[A-Za-z_]\w*(?!\w|\}|:?[-?+]))[^}\s]{0,20}\}?")
_FRACTION = re.compile(r"[-+]?[0-9.]+[eE][-+][0-9]+")  # no version and no name, and the same number in any form
_MOST_NAMED = 3
_MAX_LABEL = 63
# As far as a name is refused, or its pods are: a CronJob adds 11 characters, a StatefulSet's label 11 of a hash.
_MAX_NAME = {"Job": _MAX_LABEL, "Service": _MAX_LABEL, "CronJob": 52, "StatefulSet": 52, "JobSet": 52}


@container_rule("TL360", Severity.WARNING, kinds=(COMPOSE,))
def dollar_read_by_compose(container: SourceContainer) -> Iterator[Problem]:
    """A variable of a command is one that the service's own environment gives a literal value."""
    outside = named_beside(Path(container.workload.span.file))
    env = {name: value for name, value in container.workload.env.items() if name not in outside}
    yield from _set_inside(container, outside)
    for key in ("command", "entrypoint", "healthcheck"):
        used: dict[str, tuple[str, Node]] = {}  # by name: as it is written first, and where
        for node in below(at(container.own, key)):
            for text, variable in pieces(node.text) if isinstance(node, Scalar) else ():
                match = _NAME.fullmatch(text) if variable else None
                if match is not None and isinstance(env.get(match[1]), Known):
                    used.setdefault(match[1], (text, node))
        if used:
            texts = [text for text, _ in used.values()]
            more = f" and {len(texts) - _MOST_NAMED} more" if len(texts) > _MOST_NAMED else ""
            yield Problem(
                f"Compose replaces {', '.join(texts[:_MOST_NAMED])}{more} before the container starts, and doesn't "
                "read the service's environment",
                f"write $${texts[0][1:]}, which a shell of the container replaces",
                "variables of the file come from the calling shell and from .env",
                span=next(iter(used.values()))[1].span,
            )


def _set_inside(container: SourceContainer, outside: Collection[str]) -> Iterator[Problem]:
    """Yield what a shell's text of a command sets itself and uses, and Compose replaces before any shell reads it."""
    for node in (each for key in ("command", "entrypoint") for each in below(at(container.own, key))):
        if not isinstance(node, Scalar) or "$" not in node.text:
            continue
        for text, variable in pieces(node.text):
            match = _NAME.fullmatch(text) if variable else None
            if match is None or match[1] in container.workload.env or match[1] in outside:
                continue
            found = re.search(
                rf"(?:^|[\s;&|])(?:export )?{match[1]}=|\bfor {match[1]} in\b|\bread (?:-r )?{match[1]}\b", node.text
            )
            if found:
                yield Problem(
                    f"Compose replaces {text} before the container starts, and this command sets it only there",
                    f"write $${text[1:]}, which the shell of the container replaces",
                    "variables of the file come from the calling shell and from .env, and are empty elsewhere",
                    span=node.span,
                    # What is asked for before it is set comes from outside on purpose.
                    severity=Severity.INFO if node.text.index(text) < found.start() else None,
                )
                break


@text_rule("TL372", Severity.ERROR, COMPOSE)
def interpolation_refused(file: SourceText) -> Iterator[Problem]:
    """A scalar has a `${` behind which no name stands, or that nothing closes."""
    for node in (each for root in file.nodes for each in below(root)):
        if not isinstance(node, Scalar) or "${" not in node.text:
            continue
        match = _REFUSED.search(node.text.replace("$$", "  "))
        if match is not None:
            yield Problem(
                f"Compose takes {match[0]} for a variable, and it is none",
                f"write ${match[0]}",
                "Compose reads every ${ as the start of a variable's name, and $$ as one $",
                span=node.span,
                severity=Severity.INFO if match[0].startswith(("${<", "${{")) else None,  # for others to fill in
            )


@container_rule("TL362", Severity.WARNING, kinds=(COMPOSE,))
def look_alike_in_environment(container: SourceContainer) -> Iterator[Problem]:
    """Compose changes the text of a variable."""
    for name, node in entries_in(at(container.own, "environment")).items():
        if not isinstance(node, Scalar) or not node.plain or value_of(node) is None:
            continue
        arrives = spelled(node)
        if arrives.lower() != node.text.lower() and not _FRACTION.fullmatch(node.text):
            yield Problem(
                f"{name} is written {node.text} and arrives as {arrives}",
                f'write "{node.text}", or "{arrives}" if that is meant',
                "YAML reads it as a number, which Compose prints in its own way",
                span=node.span,
                severity=Severity.INFO if node.text == f"{arrives}.0" else None,  # to most readers the same
            )


@text_rule("TL361", Severity.ERROR, COMPOSE, KUBERNETES)
def number_for_text(file: SourceText) -> Iterator[Problem]:
    """A variable, word of a command, label or annotation is no text to its reader."""
    if file.kind == COMPOSE:
        yield from _of_services(file)
        return
    texts = [(*each, container.workload.place) for container in file.containers for each in _texts(container)]
    texts += [(*each, "") for root in file.nodes for each in _of_metadata(root)]
    seen: set[int] = set()
    for what, node, place in texts:
        if node.start not in seen and _is_other(node):
            seen.add(node.start)
            yield _no_text(what, node, place)


def _of_services(file: SourceText) -> Iterator[Problem]:
    """Yield an error for each word of a service's command that is no text to Compose."""
    for container in file.containers:
        for key in ("command", "entrypoint"):
            for each in items_in(at(container.own, key)):
                if isinstance(each, Scalar) and not isinstance(value_of(each), str):
                    yield _no_text(f"a word of {key}", each, container.workload.place)


def _texts(container: SourceContainer) -> Iterator[tuple[str, Scalar]]:
    for each in items_in(at(container.own, "env")):
        value = at(each, "value")
        if isinstance(value, Scalar):
            yield "the variable's value", value
    for key in ("command", "args"):
        for each in items_in(at(container.own, key)):
            if isinstance(each, Scalar):
                yield f"a word of {key}", each
    yield from _values(at(container.pod, "nodeSelector"), "a label of nodeSelector")


def _of_metadata(root: Node) -> Iterator[tuple[str, Scalar]]:
    for path in ((), ("spec", "template")):
        metadata = at(root, *path, "metadata")
        yield from _values(at(metadata, "labels"), "a label")
        yield from _values(at(metadata, "annotations"), "an annotation")


def _values(node: Node | None, what: str) -> Iterator[tuple[str, Scalar]]:
    for each in entries_in(node).values():
        if isinstance(each, Scalar):
            yield what, each


def _is_other(node: Scalar) -> bool:
    return not is_null(node) and not isinstance(value_of(node, yaml11=True), str) and "{{" not in node.raw


def _no_text(what: str, node: Scalar, place: str) -> Problem:
    kind = "a truth value" if isinstance(value_of(node, yaml11=True), bool) else "a number"
    plain = node.plain and "\n" not in node.raw and node.tag is None
    return Problem(
        f"{what} is {node.raw}, {kind} to YAML, where text is expected",
        f'write "{node.raw}"',
        "the file is refused: `cannot unmarshal number` by Kubernetes, `must be a string` by Compose",
        place,
        node.span,
        edits=(Edit(node.span, f'"{node.raw}"'),) if plain else (),
    )


@text_rule("TL364", Severity.ERROR, KUBERNETES)
def name_too_long(file: SourceText) -> Iterator[Problem]:
    """The name of an object or a container is too long."""
    for each in (each for root in file.nodes for each in _objects(root)):
        kind = text_at(each, "kind") or ""
        if kind in _MAX_NAME:
            yield from _too_long(f"the name of a {kind}", at(each, "metadata", "name"), _MAX_NAME[kind], "")
    for container in file.containers:
        place = container.workload.place
        yield from _too_long("the name of a container", at(container.own, "name"), _MAX_LABEL, place)


def _objects(root: Node) -> tuple[Node, ...]:
    items = at(root, "items")
    if isinstance(items, Sequence) and (text_at(root, "kind") or "").endswith("List"):
        return items.items
    return (root,)


def _too_long(what: str, name: Node | None, longest: int, place: str) -> Iterator[Problem]:
    if isinstance(name, Scalar) and len(name.text) > longest and re.fullmatch(r"[a-z0-9.-]+", name.text):
        yield Problem(
            f"{what} has {len(name.text)} characters, and {longest} are allowed",
            f"choose a name of at most {longest} characters",
            "it becomes a label or a host name, which hold 63 characters with what is added",
            place,
            name.span,
        )
