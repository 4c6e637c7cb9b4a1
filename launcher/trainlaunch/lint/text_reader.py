"""Reads one text of any kind that lint knows; a training script is parsed, and never run or imported."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from typing import NamedTuple

from trainlaunch.diagnostics import Span
from trainlaunch.lint import devcontainer, workflow, yaml_files
from trainlaunch.lint.command_lines import fences, read_regions, recipes, whole
from trainlaunch.lint.dockerfile import read_dockerfile
from trainlaunch.lint.ecs import read_ecs
from trainlaunch.lint.file_kinds import MAKEFILE, MARKDOWN, FileKind, kind_of
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
from trainlaunch.yamltree.tolerant import Documents, Source

_YAML: dict[str, Callable[[str, str, Documents], SourceText]] = {
    COMPOSE: yaml_files.read_compose_file,
    KUBERNETES: yaml_files.read_kubernetes_file,
    DEVCONTAINER: devcontainer.read_devcontainer,
    GITHUB: workflow.read_github,
    GITLAB: workflow.read_gitlab,
    ECS: read_ecs,
    SAGEMAKER: lambda text, name, found: SourceText(SAGEMAKER, text, Source(text, name), nodes=found.nodes),
}
_REGIONS = {SHELL: whole, MARKDOWN: fences, MAKEFILE: recipes}


class UnreadableText(NamedTuple):
    """A text of a kind that lint reads, which can't be read from a place on."""

    kind: str
    message: str
    span: Span


def read_text(text: str, name: str, forced: str | None = None) -> SourceText | UnreadableText | FileKind:
    """Return what a text says, what is wrong with it, or its Kind where lint doesn't read it."""
    kind = kind_of(name, text, forced)
    if kind.name in _YAML and kind.read is not None:
        if kind.read.broken is not None:
            return UnreadableText(kind.name, kind.read.broken.message, kind.read.broken.span)
        return _YAML[kind.name](text, name, kind.read)
    if kind.name == TRAINING_SCRIPT:
        script = read_script(text, name)
        return script if isinstance(script, SourceText) else UnreadableText(TRAINING_SCRIPT, *script)
    if kind.name == DOCKERFILE:
        return read_dockerfile(text, name)
    if kind.name in _REGIONS:
        return read_regions(text, name, _REGIONS[kind.name](text))
    return kind


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
