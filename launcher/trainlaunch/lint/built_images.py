"""What a Dockerfile says of the image that is built of it: the process of its last stage, and its base image."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from trainlaunch.formats.docker.shell_lexer import Word, tokens
from trainlaunch.formats.workload import Known, Unknown, Value
from trainlaunch.lint.dockerfile import read_dockerfile
from trainlaunch.lint.image_builds import Build
from trainlaunch.lint.image_files import build_context, is_covered, mounted, runs_known_files
from trainlaunch.repository.regular_files import read_regular
from trainlaunch.repository.root import ITS_OWN
from trainlaunch.rules.sources.instructions import is_for_children, is_of_posix_shell, process_of, stages
from trainlaunch.rules.sources.programs import Argv
from trainlaunch.rules.sources.source_text import BuiltImage, Instruction, SourceContainer, SourceText
from trainlaunch.units import MIB

_TEMPLATE = re.compile(r"\{\{|\{%|<%")
_USED = re.compile(r"\$(?:(\w+)|\{(\w+)(?::?-([^{}$]*))?\})")


def image_of(build: Build, container: SourceContainer) -> BuiltImage | None:
    """Return the image of a container's build; None where its Dockerfile can't be read, or other files lie over it."""
    text = Path(container.workload.span.file)
    image = _read_image(build) if ITS_OWN.holds(build.dockerfile, text) else None
    if image is None:
        return None
    folder = os.path.relpath(build.context, text.parent)
    over = mounted(container, folder)
    image = image._replace(context=image.context._replace(folder=folder, copies=(*image.context.copies, *over)))
    if runs_known_files(container, image):
        return image
    if is_covered(container, image):
        return None
    # The script of one that hasn't the whole folder may be another file.
    return image if image.context.is_whole else image._replace(entrypoint=(), command=())


@functools.lru_cache(maxsize=256)
def _read_image(build: Build) -> BuiltImage | None:
    try:
        text = read_regular(build.dockerfile, MIB).decode()
    except (OSError, ValueError):
        return None
    file = read_dockerfile(text, str(build.dockerfile))
    every = [*stages(file)]
    names = {_from(each)[1]: index for index, each in enumerate(every)} | {str(i): i for i in range(len(every))}
    last = names.get(build.target.lower()) if build.target else len(every) - 1
    if _TEMPLATE.search(text) or not every or last is None:
        return None
    given = _arguments(file, build.arguments)
    chain = [every[last]]
    while True:
        base, _ = _from(chain[-1])
        base = _USED.sub(lambda it: given.get(it[1] or it[2]) or it[3] or it[0], base)
        index = names.get(base.lower())
        if index is None or index >= every.index(chain[-1]) or base.isdecimal():
            break
        chain.append(every[index])
    return _of_stages(file, chain, base, build.context) if all(map(is_of_posix_shell, chain)) else None


def _from(stage: list[Instruction]) -> tuple[str, str]:
    """Return the image that a stage is from, and its own name."""
    words = [each for each in stage[0].value.split() if not each.startswith("--")]
    named = len(words) > 2 and words[1].upper() == "AS"
    return words[0] if words else "", words[2].lower() if named else ""


def _arguments(file: SourceText, given: tuple[str, ...]) -> Mapping[str, str]:
    """Return the arguments that FROM sees: those in front of the first one, each as the build gives it."""
    found: dict[str, str] = {}
    for each in file.instructions:
        if each.name == "FROM":
            break
        if each.name == "ARG":
            for word in each.value.split():
                name, _, default = word.partition("=")
                found[name] = default.strip("\"'")
    return found | {name: value for name, _, value in (each.partition("=") for each in given) if name in found}


def _of_stages(file: SourceText, chain: list[list[Instruction]], base: str, context: Path) -> BuiltImage:
    """Return what a stage, behind those that it is made from, leaves as the process of an image."""
    entrypoint: Argv = ()
    command: Argv = ()
    for stage in reversed(chain):
        own = process_of(file, stage)
        if "ENTRYPOINT" in own:
            entrypoint, command = _words(own["ENTRYPOINT"]), ()  # which empties the CMD of another stage
        command = _words(own["CMD"]) if "CMD" in own else command
    every = [each for stage in reversed(chain) for each in stage if not is_for_children(file, each)]
    context_inside = build_context(every, base, context)
    return BuiltImage(entrypoint, command, base, context_inside, dict(_variables(file, chain)))


def _words(each: Instruction) -> Argv:
    return tuple(word.text for word in each.words) if each.exec_form else ("/bin/sh", "-c", each.value.strip())


def _variables(file: SourceText, chain: list[list[Instruction]]) -> Iterator[tuple[str, Value[str]]]:
    """Yield what ENV sets, in both of its forms."""
    for each in (each for stage in reversed(chain) for each in stage if each.name == "ENV"):
        words = [word for word in tokens(each.value) if isinstance(word, Word)]
        span = file.source.span(each.start, each.end)
        pairs = [(word.text.partition("="), word.known) for word in words]
        if words and "=" not in words[0].text:
            pairs = [
                ((words[0].text, "=", " ".join(word.text for word in words[1:])), all(word.known for word in words))
            ]
        for (name, _, value), known in pairs:
            yield name, Known(value, value, span) if known else Unknown(value, span)
