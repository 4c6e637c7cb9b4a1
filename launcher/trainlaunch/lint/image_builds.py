"""Of which Dockerfile a text builds the image of a container: what its lines that build, or its services, name.

Where two could be meant there is none.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from trainlaunch.formats.docker.line import PROGRAMS
from trainlaunch.formats.workload import Known, Unknown, Value
from trainlaunch.lint.build_folders import DOCKERFILE, Place, assignments, placed, program_at
from trainlaunch.lint.compose_layers import is_built, is_laid_over
from trainlaunch.rules.sources.near_files import is_file
from trainlaunch.rules.sources.source_text import (
    COMPOSE,
    DEVCONTAINER,
    SourceContainer,
    SourceText,
    SourceWord,
    at,
    entries_in,
    text_at,
)
from trainlaunch.yamltree.tolerant import Scalar

_GROUPS = frozenset({"buildx", "image", "builder"})
_GIVE_NAMES = frozenset({"pull", "tag", "import", "commit"})  # to another image, as their last word
_SWITCHES = frozenset({
    *("--pull", "--no-cache", "--rm", "--force-rm", "-q", "--quiet", "--load", "--push", "--squash", "--compress"),
    *("-D", "--debug", "--check", "--layers", "--tls-verify"),
})  # fmt: skip
_SEVERAL = re.compile(r"`|\$\(|\$\{?[\d@*#?!]")  # what isn't the same text in all places
_BRACED = re.compile(r"\$[{(]([A-Za-z_]\w*)[)}]")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)")
_WRITES = re.compile(  # a Dockerfile, or shows one
    r"^[ \t]*FROM[ \t]+\S|>[ \t]{0,9}[^\s>]{0,99}Dockerfile"
    r"|^[ \t@$-]*(?:sudo )?(?:cp|mv|ln|sed|tee|curl|wget)\b[^\n]{0,300}Dockerfile",
    re.MULTILINE,
)
_REMOTE = re.compile(r"-|[a-z]+://.*|git@.*|github\.com/.*")


class Build(NamedTuple):
    """One build: its Dockerfile and its folder, its last stage, and what it gives to arguments, `$` where unknown."""

    dockerfile: Path
    context: Path
    target: str = ""
    arguments: tuple[str, ...] = ()


Builds = Mapping[str, Build | None]


def builds_of(file: SourceText) -> Builds:
    """Return the builds of a text by the names of their images; None for a name that may have several."""
    found: dict[str, Build | None] = {}
    named = [*_of_commands(file), *((each.workload.image, build_of_service(each)) for each in _built_services(file))]
    for value, build in named:
        name = _name(value, file.text)
        if name:
            found[name] = build if found.get(name, build) == build else None
    return found


def build_of(container: SourceContainer, file: SourceText, builds: Builds) -> Build | None:
    """Return the build of a container's image; None where the text has none, or may have several."""
    if _is_built(container):
        return build_of_service(container)
    if file.kind == DEVCONTAINER:
        return _build_of_devcontainer(file)
    written = container.own is None or file.kind == COMPOSE  # and not what runs the steps of a job of CI
    name = _name(container.workload.image, file.text) if builds and written else ""
    return builds.get(name) if name else None


def _name(image: Value[str], text: str) -> str:
    """Return an image's name with its tag, variables as they are written; empty where it may be another elsewhere."""
    written = image.value if isinstance(image, Known) else image.text.strip("\"'") if image is not None else ""
    name = _BRACED.sub(r"$\1", written)
    if _SEVERAL.search(name) or any(_has_several(each, text) for each in _VARIABLE.findall(name)):
        return ""
    bare = "$" not in name and not re.search(r":[^/]*\Z|@", name)
    return f"{name}:latest" if name and bare else name


def _has_several(variable: str, text: str) -> bool:
    return len({re.split(r"[\s;]", each, maxsplit=1)[0] for each in assignments(text).get(variable, ())}) > 1


def _of_commands(file: SourceText) -> Iterator[tuple[Value[str], Build | None]]:
    """Yield each image that a command builds, with its build, and each that one gives a name otherwise, with None."""
    if _WRITES.search(file.text):
        return
    for command, place in placed(file):
        words = [each.text.lstrip("@-") if not index else each.text for index, each in enumerate(command)]
        at_word = program_at(words)
        if posixpath.basename("".join(words[at_word : at_word + 1])) not in PROGRAMS:
            continue
        at_word += 1 + (words[at_word + 1 : at_word + 2] != [] and words[at_word + 1] in _GROUPS)
        verb = "".join(words[at_word : at_word + 1])
        if verb in _GIVE_NAMES:
            yield _value(command[-1], file), None
        elif verb == "build":
            yield from _built(command[at_word + 1 :], file, place)


def _value(word: SourceWord, file: SourceText) -> Value[str]:
    span = file.source.span(word.start, word.end)
    return Unknown(word.text, span)


def _built(words: Sequence[SourceWord], file: SourceText, place: Place) -> Iterator[tuple[Value[str], Build | None]]:
    given: dict[str, list[SourceWord]] = {}
    rest = iter(words)
    for each in rest:
        name, joined, value = each.text.partition("=")
        if not each.text.startswith("-") or each.text == "-":
            given.setdefault("", []).append(each)
        elif name not in _SWITCHES:
            word = each._replace(text=value) if joined else next(rest, None)
            given.setdefault(name, []).extend([] if word is None else [word])
    build = _build(given, place)
    for tag in (*given.get("-t", ()), *given.get("--tag", ())):
        yield _value(tag, file), build


def _build(given: Mapping[str, Sequence[SourceWord]], place: Place) -> Build | None:
    files, targets = ((*given.get("-f", ()), *given.get("--file", ())), given.get("--target", ()))
    contexts = given.get("", ())
    if len(contexts) != 1 or not all(each.known for each in (*contexts, *files, *targets)):
        return None
    if _REMOTE.fullmatch(contexts[0].text):
        return None
    name = files[-1].text if files else posixpath.join(contexts[0].text, DOCKERFILE)
    if place.open and not posixpath.dirname(posixpath.normpath(name)):
        return None
    found = (each for each in reversed(place.folders) if is_file(each / name))
    places = {(each / name).resolve(): each / contexts[0].text for each in found}
    arguments = (
        each.text if each.known and "=" in each.text else f"{each.text.partition('=')[0]}=$"
        for each in given.get("--build-arg", ())
    )
    target = targets[-1].text if targets else ""
    return Build(*places.popitem(), target, tuple(arguments)) if len(places) == 1 else None


def _is_built(container: SourceContainer) -> bool:
    return container.workload.format == COMPOSE and is_built(container.workload)


def _built_services(file: SourceText) -> Iterator[SourceContainer]:
    yield from (each for each in file.containers if _is_built(each) and each.workload.image is not None)


def build_of_service(container: SourceContainer) -> Build | None:
    """Return the build of a service; None where another file or a variable decides it."""
    rest = container.workload.rest
    built = {key.removeprefix("service.build"): value for key, value in rest.items() if key.startswith("service.build")}
    text = Path(container.workload.span.file)
    partial = "" not in built and ".context" not in built
    service = "" if partial else container.workload.place.removeprefix("services.")
    if is_laid_over(text, service) or at(container.own, "extends") is not None or text.suffix not in {".yml", ".yaml"}:
        return None
    context = str(built.get("", built.get(".context", ".")))
    return _stated(text, built, (context, posixpath.join(context, str(built.get(".dockerfile", DOCKERFILE)))))


def _build_of_devcontainer(file: SourceText) -> Build | None:
    """Return the build of a devcontainer, both of whose paths are seen from its own folder."""
    root = file.nodes[0] if file.nodes else None
    dockerfile = text_at(root, "build", "dockerfile") or text_at(root, "dockerFile")
    if dockerfile is None:
        return None
    context = text_at(root, "build", "context") or text_at(root, "context") or "."
    given = entries_in(at(root, "build", "args")).items()
    built = {f".args.{key}": each.text for key, each in given if isinstance(each, Scalar)}
    built[".target"] = text_at(root, "build", "target") or ""
    return _stated(Path(file.source.span(0, 0).file), built, (context, dockerfile))


def _stated(text: Path, built: Mapping[str, object], paths: tuple[str, str]) -> Build | None:
    """Return a build of a context and a Dockerfile (`paths`), with its target and what it gives to arguments."""
    context, file = paths
    target = str(built.get(".target", ""))
    if ".dockerfile_inline" in built or "$" in f"{context}{file}{target}" or _REMOTE.fullmatch(context):
        return None
    given = ((key.removeprefix(".args."), value) for key, value in built.items() if key.startswith(".args."))
    arguments = (str(value) if key.isdecimal() else f"{key}={'$' if value is None else value}" for key, value in given)
    path = text.absolute().parent / file
    return Build(path.resolve(), text.absolute().parent / context, target, tuple(arguments)) if is_file(path) else None
