"""Of which Dockerfile a text builds the image of a container: what its lines that build, or its services, name.

Where two could be meant there is none.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from trainlaunch.formats.workload import Known, Unknown, Value
from trainlaunch.lint.file_kinds import MAKEFILE, kind_of
from trainlaunch.repository.root import ITS_OWN
from trainlaunch.rules.sources.source_text import (
    COMPOSE,
    DEVCONTAINER,
    GITHUB,
    SourceContainer,
    SourceText,
    SourceWord,
    at,
    entries_in,
    text_at,
)
from trainlaunch.yamltree.tolerant import Scalar

_PROGRAMS = frozenset({"docker", "podman", "nerdctl", "nvidia-docker"})
_IN_FRONT = 4  # words before the program
_GROUPS = frozenset({"buildx", "image", "builder"})
_GIVE_NAMES = frozenset({"pull", "tag", "import", "commit"})  # to another image, as their last word
_SWITCHES = frozenset({
    *("--pull", "--no-cache", "--rm", "--force-rm", "-q", "--quiet", "--load", "--push", "--squash", "--compress"),
    *("-D", "--debug", "--check", "--layers", "--tls-verify"),
})  # fmt: skip
_SEVERAL = re.compile(r"`|\$\(|\$\{?[\d@*#?!]")  # what isn't the same text in all places
_BRACED = re.compile(r"\$[{(]([A-Za-z_]\w*)[)}]")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)")
# A folder which a variable or a command names that are about the text's own place.
_OWN = re.compile(r"dirname|rev-parse|bash_source|script|root|repo|project|here|pwd|cwd", re.IGNORECASE)
_MOST_FOLDERS = 60
_WRITES = re.compile(  # a Dockerfile, or shows one
    r"^[ \t]*FROM[ \t]+\S|>[ \t]{0,9}\S{0,99}Dockerfile"
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


@functools.lru_cache(maxsize=64)
def _has_several(variable: str, text: str) -> bool:
    given = re.findall(rf"(?<![\w$]){variable}[ \t]*[:?+]?=[ \t]*([^\s;]*)", text)
    return len({*given}) > 1


def _of_commands(file: SourceText) -> Iterator[tuple[Value[str], Build | None]]:
    """Yield each image that a command builds, with its build, and each that one gives a name otherwise, with None."""
    if (file.kind == GITHUB and "working-directory" in file.text) or _WRITES.search(file.text):
        return
    own = folders = [*_folders(file)]
    for command in file.commands:
        words = [each.text.lstrip("@-") if not index else each.text for index, each in enumerate(command)]
        if words[0] in {"cd", "pushd"} and len(words) > 1 and folders:
            folders = _entered(command[1], file, (own, folders))
        at_word = next((i for i, each in enumerate(words[:_IN_FRONT]) if posixpath.basename(each) in _PROGRAMS), None)
        if at_word is None:
            continue
        at_word += 1 + (words[at_word + 1 : at_word + 2] != [] and words[at_word + 1] in _GROUPS)
        verb = "".join(words[at_word : at_word + 1])
        if verb in _GIVE_NAMES:
            yield _value(command[-1], file), None
        elif verb == "build":
            yield from _built(command[at_word + 1 :], file, folders)


def _folders(file: SourceText) -> Iterator[Path]:
    """Yield the folders in which the commands of a text may run: its own, and those above in its repository."""
    name = file.source.span(0, 0).file
    text = Path(name)
    if name in {"", "-"}:
        return
    root = ITS_OWN.root(text)
    for each in text.absolute().parents:
        if each.is_relative_to(root):
            yield each
        if kind_of(name, "").name == MAKEFILE:
            return


def _entered(word: SourceWord, file: SourceText, folders: tuple[list[Path], list[Path]]) -> list[Path]:
    """Return the folders in which commands may run behind a `cd`; none where nobody can say which.

    `folders` are those in which the text may begin, and those in which it may be so far.
    """
    own, before = folders
    if not word.known:
        return before if _OWN.search(word.text) else []
    inner = [*dict.fromkeys(each / word.text for each in (*own, *before[-len(own) :]))]
    if not any(each.is_dir() for each in inner) and file.text.count("git clone ") != 1:
        return []
    return [*before, *(each for each in inner if each not in before)] if len(before) < _MOST_FOLDERS else []


def _value(word: SourceWord, file: SourceText) -> Value[str]:
    span = file.source.span(word.start, word.end)
    return Unknown(word.text, span)


def _built(
    words: Sequence[SourceWord], file: SourceText, folders: Sequence[Path]
) -> Iterator[tuple[Value[str], Build | None]]:
    given: dict[str, list[SourceWord]] = {}
    rest = iter(words)
    for each in rest:
        name, joined, value = each.text.partition("=")
        if not each.text.startswith("-") or each.text == "-":
            given.setdefault("", []).append(each)
        elif name not in _SWITCHES:
            word = each._replace(text=value) if joined else next(rest, None)
            given.setdefault(name, []).extend([] if word is None else [word])
    build = _build(given, folders)
    for tag in (*given.get("-t", ()), *given.get("--tag", ())):
        yield _value(tag, file), build


def _build(given: Mapping[str, Sequence[SourceWord]], folders: Sequence[Path]) -> Build | None:
    files, targets = ((*given.get("-f", ()), *given.get("--file", ())), given.get("--target", ()))
    contexts = given.get("", ())
    if len(contexts) != 1 or not all(each.known for each in (*contexts, *files, *targets)):
        return None
    if _REMOTE.fullmatch(contexts[0].text):
        return None
    name = files[-1].text if files else posixpath.join(contexts[0].text, "Dockerfile")
    places = {(each / name).resolve(): each / contexts[0].text for each in reversed(folders) if (each / name).is_file()}
    arguments = (
        each.text if each.known and "=" in each.text else f"{each.text.partition('=')[0]}=$"
        for each in given.get("--build-arg", ())
    )
    target = targets[-1].text if targets else ""
    return Build(*places.popitem(), target, tuple(arguments)) if len(places) == 1 else None


def _is_built(container: SourceContainer) -> bool:
    rest = container.workload.rest
    return container.workload.format == COMPOSE and any(
        each == "service.build" or each.startswith("service.build.") for each in rest
    )


def _built_services(file: SourceText) -> Iterator[SourceContainer]:
    yield from (each for each in file.containers if _is_built(each) and each.workload.image is not None)


def build_of_service(container: SourceContainer) -> Build | None:
    """Return the build of a service; None where another file or a variable decides it."""
    rest = container.workload.rest
    built = {key.removeprefix("service.build"): value for key, value in rest.items() if key.startswith("service.build")}
    extends = at(container.own, "extends") is not None and at(container.own, "build") is None
    text = Path(container.workload.span.file)
    if extends or text.suffix not in {".yml", ".yaml"}:
        return None
    context = str(built.get("", built.get(".context", ".")))
    return _stated(text, built, (context, posixpath.join(context, str(built.get(".dockerfile", "Dockerfile")))))


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
    return Build(path.resolve(), text.absolute().parent / context, target, tuple(arguments)) if path.is_file() else None
