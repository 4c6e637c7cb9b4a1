"""Reads one text as what it is: its containers, commands and instructions, or why it can't be read."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

from trainlaunch.diagnostics import Severity, Span
from trainlaunch.lint import devcontainer, workflow, yaml_files
from trainlaunch.lint.broken_texts import gravity_of_broken
from trainlaunch.lint.command_lines import MAKE_SHELL, blocks, fenced, fences, read_regions, recipes, whole
from trainlaunch.lint.dockerfile import read_dockerfile
from trainlaunch.lint.ecs import read_ecs
from trainlaunch.lint.file_kinds import MAKEFILE, MARKDOWN, FileKind, kind_of
from trainlaunch.lint.unused_files import is_on_purpose
from trainlaunch.rules.sources.source_text import (
    COMPOSE,
    DEVCONTAINER,
    DOCKERFILE,
    ECS,
    GITHUB,
    GITLAB,
    KUBERNETES,
    SAGEMAKER,
    SHELL,
    TRAINING_SCRIPT,
    SourceText,
)
from trainlaunch.yamltree.tolerant import Documents, Source, documents

_YAML_WORDS = frozenset({"yaml", "yml", "docker-compose", "compose"})
_DOCKERFILE_WORDS = frozenset({"dockerfile", "docker", "containerfile"})
_YAML: dict[str, Callable[[str, str, Documents], SourceText]] = {
    COMPOSE: yaml_files.read_compose_file,
    KUBERNETES: yaml_files.read_kubernetes_file,
    DEVCONTAINER: devcontainer.read_devcontainer,
    GITHUB: workflow.read_github,
    GITLAB: workflow.read_gitlab,
    ECS: read_ecs,
    SAGEMAKER: lambda text, name, found: SourceText(SAGEMAKER, text, Source(text, name), nodes=found.nodes),
}
_OURS = re.compile(r"^<{7} \S[^\n]{0,60}", re.MULTILINE)
_THEIRS = re.compile(r"^={7}\r?$", re.MULTILINE)
_MERGED = re.compile(r"^>{7} ", re.MULTILINE)
_REGIONS = {SHELL: whole, MARKDOWN: fences, MAKEFILE: recipes}


class UnreadableText(NamedTuple):
    """A text of a kind that lint reads, which can't be read from a place on; an info unless others can't either."""

    kind: str
    message: str
    span: Span
    severity: Severity = Severity.INFO


def read_text(text: str, name: str, forced: str | None = None) -> SourceText | UnreadableText | FileKind:
    """Return what a text says, what is wrong with it, or its Kind where lint doesn't read it."""
    kind = kind_of(name, text, forced)
    if kind.name in _YAML and kind.read is not None:
        if kind.read.broken is not None:
            message, span = kind.read.broken
            severity = gravity_of_broken(name, text, message, span.line, told=forced is not None)
            return _merging(text, name, kind.name) or UnreadableText(kind.name, message, span, severity)
        return _YAML[kind.name](text, name, kind.read)
    if kind.name == TRAINING_SCRIPT:
        script = read_script(text, name)
        if isinstance(script, SourceText):
            return script
        return _merging(text, name, TRAINING_SCRIPT, script[1].line) or UnreadableText(TRAINING_SCRIPT, *script)
    if kind.name == DOCKERFILE:
        return read_dockerfile(text, name)
    if kind.name in _REGIONS:
        regions = blocks if name.lower().endswith(".rst") else _REGIONS[kind.name]
        return read_regions(text, name, regions(text), MAKE_SHELL if kind.name == MAKEFILE else SHELL)
    return kind


def _merging(text: str, name: str, kind: str, at: int | None = None) -> UnreadableText | None:
    """Return that a text can't be read since Git left both sides of a merge in it; None where none are there.

    `at` is the line where its reader stopped, which must be one of theirs.
    """
    first = _OURS.search(text)
    between = _THEIRS.search(text, first.end()) if first else None
    end = _MERGED.search(text, between.end()) if between else None
    if first is None or end is None:
        return None
    line, last = (text.count("\n", 0, each.start()) + 1 for each in (first, end))
    if at is not None and not line <= at <= last:
        return None
    message = f"Git left both sides of a merge in it, from {first[0]} on"
    span = Span(name, line, 1, line, len(first[0]) + 1)
    return UnreadableText(kind, message, span, Severity.INFO if is_on_purpose(name) else Severity.ERROR)


def embedded(text: str, name: str) -> Iterator[SourceText]:
    """Yield the YAML and the Dockerfiles that stand in fences of a Markdown text, at their places."""
    for word, start, end in fenced(text):
        lines = text.count("\n", 0, start)
        inside = "\n" * lines + text[start:end]
        if word in _DOCKERFILE_WORDS:
            yield read_dockerfile(inside, name)
        elif word in _YAML_WORDS:
            kind = kind_of("-.yaml", inside)
            if kind.name in _YAML and kind.read is not None and kind.read.broken is None:
                yield _YAML[kind.name](inside, name, documents(inside, name))


def read_script(text: str, name: str) -> SourceText | tuple[str, Span]:
    """Return a script with its tree, or what this Python refuses in it and where."""
    source = Source(text, name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the script's own escapes
            tree = ast.parse(text.removeprefix("\ufeff").replace("\f", " "))
    except SyntaxError as error:
        line, column = error.lineno or 1, max(error.offset or 1, 1)
        return error.msg, Span(name, line, column, line, column + 1)
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or "nested too deep", Span(name, 1, 1, 1, 1)
    return SourceText(TRAINING_SCRIPT, text, source, tree=tree)
