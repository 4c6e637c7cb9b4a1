"""The container of a devcontainer.json: its image, and what runArgs say as docker run would."""

from __future__ import annotations

from collections.abc import Iterator

from trainlaunch.diagnostics import Edit
from trainlaunch.formats.docker import shell_lexer as shell
from trainlaunch.formats.docker.line import parsed
from trainlaunch.formats.docker.placed_values import PlacedText
from trainlaunch.formats.docker.read import workload_of
from trainlaunch.gpu_names import ALL_GPUS
from trainlaunch.rules.sources.container_facts import engine_text
from trainlaunch.rules.sources.source_text import (
    DEVCONTAINER,
    SourceContainer,
    SourceText,
    at,
    below,
    entries_in,
    items_in,
    text_at,
)
from trainlaunch.yamltree.tolerant import Documents, Mapping, Node, Scalar, Sequence

COMMAND = ("docker", "run")


def read_devcontainer(text: str, name: str, found: Documents) -> SourceText:
    """Return the container that a devcontainer starts itself; none where Compose does."""
    source = PlacedText(text, name)
    root = found.nodes[0] if found.nodes else None
    containers: tuple[SourceContainer, ...] = ()
    if isinstance(root, Mapping) and at(root, "dockerComposeFile") is None:
        image, key = at(root, "image"), root.keys.get("image") or root.keys.get("build")
        if key is not None:
            words = [*_arguments(text, root), *_properties(root)]
            line = parsed(COMMAND, word_of(key), [*words, *([word_of(image)] if isinstance(image, Scalar) else [])])
            workload = workload_of(line, source)._replace(place="container")
            containers = (SourceContainer(workload, own=root, add_shm=lambda size: _added(text, source, root, size)),)
    return SourceText(DEVCONTAINER, text, source, containers, found.nodes)


def word_of(node: Scalar) -> shell.Word:
    """Return a scalar as one word of a command, quoted as it stands."""
    variable = "${" in node.text
    return shell.Word([shell.Piece(node.text, node.start, node.end, node.start, known=not variable, quoted=True)])


def _arguments(text: str, root: Mapping) -> list[shell.Word]:
    listed = at(root, "runArgs")
    words: list[shell.Word] = []
    for each in items_in(listed):
        found = [it for it in shell.tokens(text, each.start, each.end) if isinstance(it, shell.Word)]
        words += found[:1]  # a string in double quotes is one word to a shell too
    return words


def _properties(root: Mapping) -> Iterator[shell.Word]:
    """Yield the flags that properties stand for: mounts, variables, init, privileged, and a GPU that is required."""
    mounts, variables = at(root, "mounts"), at(root, "containerEnv")
    for each in items_in(mounts):
        if isinstance(each, Mapping):
            pairs = (f"{key}={value.text}" for key, value in each.items.items() if isinstance(value, Scalar))
            yield from (_flag("--mount", each), _flag(",".join(pairs), each))
        elif isinstance(each, Scalar):
            yield from (_flag("--mount", each), word_of(each))
    for key, value in entries_in(variables).items():
        if isinstance(value, Scalar) and "${" not in value.text:
            yield from (_flag("--env", value), _flag(f"{key}={value.text}", value))
    for key in ("init", "privileged"):
        if text_at(root, key) == "true":
            yield _flag(f"--{key}", root.keys[key])
    needed = at(root, "hostRequirements", "gpu")
    listed = at(root, "runArgs")
    stated = any(isinstance(each, Scalar) and each.text.startswith("--gpus") for each in below(listed))
    if isinstance(needed, Mapping) or (isinstance(needed, Scalar) and needed.text == "true"):
        yield from () if stated else (_flag("--gpus", needed), _flag(ALL_GPUS, needed))


def _flag(text: str, place: Node) -> shell.Word:
    return shell.Word([shell.Piece(text, place.start, place.end, place.start, quoted=True)])


def _added(text: str, source: PlacedText, root: Mapping, size: int) -> tuple[Edit, ...]:
    flag = f'"--shm-size={engine_text(size)}"'
    listed = at(root, "runArgs")
    if isinstance(listed, Sequence):
        place = listed.items[0].start if listed.items else listed.start + 1
        return (Edit(source.span(place, place), f"{flag}, " if listed.items else flag),)
    if "runArgs" in root.keys or not root.pairs or text[root.start : root.start + 1] != "{":
        return ()
    first = root.pairs[0][0].start
    between = text[root.start + 1 : first]
    blanks = between[len(between.rstrip()) :]
    return (Edit(source.span(first, first), f'"runArgs": [{flag}],{blanks or " "}'),)
