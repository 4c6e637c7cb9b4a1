"""Which kind of text a file is: by its name where that decides, else by what it says."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import NamedTuple

from trainlaunch.job.reserved import HEADER_START
from trainlaunch.lint.document_kinds import kind_of_documents
from trainlaunch.lint.unused_files import KUSTOMIZATIONS
from trainlaunch.repository.own_files import own_text
from trainlaunch.rules.sources.near_scripts import TORCH
from trainlaunch.rules.sources.source_text import (
    COMPOSE,
    DEVCONTAINER,
    DOCKERFILE,
    ECS,
    GITHUB,
    GITLAB,
    KUBERNETES,
    MARKUPS,
    SAGEMAKER,
    SHELL,
    TRAINING_SCRIPT,
    below,
)
from trainlaunch.yamltree.tolerant import Documents, Mapping, Node, documents

MARKDOWN, MAKEFILE = "markdown", "makefile"
KINDS = (
    SHELL,
    MARKDOWN,
    MAKEFILE,
    COMPOSE,
    KUBERNETES,
    DOCKERFILE,
    DEVCONTAINER,
    GITHUB,
    GITLAB,
    SAGEMAKER,
    ECS,
    TRAINING_SCRIPT,
)
YAML_KINDS = frozenset({COMPOSE, KUBERNETES, GITHUB, GITLAB, SAGEMAKER, DEVCONTAINER, ECS})
TEMPLATE = "template"
_DOCKERFILE = re.compile(r"(?:dockerfile|containerfile)(?:[.-].*)?|.*\.(?:dockerfile|containerfile)", re.IGNORECASE)
_MAKEFILE = re.compile(r"(?:gnu)?makefile(?:\..*)?|.*\.mk", re.IGNORECASE)
_SHELLS = frozenset({".sh", ".bash", ".zsh", ".ksh", ".sbatch", ".slurm"})
_SHEBANG = re.compile(r"#!.*\b(?:ba|da|z|k|a)?sh\b")
_ENGINE = r"\b(?:docker|podman|nerdctl)\b"
_RUNS = re.compile(rf"{_ENGINE}(?:(?!{_ENGINE})[^\n])*\b(?:run|create)\b")
_TEMPLATED = re.compile(
    # What Argo fills in once it runs makes no template.
    r"^[ \t]*\{\{(?![ \t]*(?:=|(?:item|retries|lastRetry)\b|(?:inputs|outputs|workflow|cronworkflow|steps|tasks)\.))"
    r"|:[ \t]*\{\{-?[ \t]*(?:\.|include|tpl|toYaml|if|with|range)",
    re.MULTILINE,
)
# A YAML text without any of these has no container in it; looking for them is faster than parsing.
_MAY_HOLD = re.compile(
    r"^[ \t]*(?:- )?\"?(?:containers|services|jobs|container_config|podSpec|script|steps|template|image)\"?:"
    r"|\b[cC]ontainerProperties\b"
    r"|\b[cC]ontainerDefinitions\b"
    r"|[{,] *\"?(?:containers|services|image)\"?:",
    re.MULTILINE,
)
_SUFFIXES = frozenset({".yaml", ".yml"})
_OF_JSON = (
    *("containers", "runArgs", "services", "containerDefinitions", "ContainerDefinitions"),
    *("containerProperties", "ContainerProperties"),
)
_OF_ECS = re.compile(r'"[cC]ontainer(?:Definitions|Properties)"')
_DEFINITION = re.compile(r"^kind: CustomResourceDefinition[ \t]*$", re.MULTILINE)
# Notes with YAML in them begin with something else, and no program reads them by such a name.
STARTS_YAML = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*(?:---|%|[-{[<&!]|[\w.\"'/][\w.\"'/ -]*:(?:\s|$))")
PIPELINE = ".gitlab-ci.yml"
READ_BY_NAME = re.compile(r"(?:docker-)?compose(?:[-_.][\w.-]+)?\.ya?ml")
_IMPORT = re.compile(r"^(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+[\w(]", re.MULTILINE)
_TEMPLATES = frozenset({".tpl", ".tmpl", ".gotmpl", ".j2", ".jinja", ".jinja2"})
# What of a kustomization changes containers that stand elsewhere.
_CHANGES = re.compile(
    r"^(?:patches|patchesStrategicMerge|patchesJson6902|components|helmCharts|transformers|replacements):", re.MULTILINE
)


class FileKind(NamedTuple):
    """A text's kind, or TEMPLATE, or None for a text that lint doesn't read; its documents where it is YAML."""

    name: str | None
    read: Documents | None = None


def kind_of(name: str, text: str, forced: str | None = None) -> FileKind:
    """Return the kind of a text; `name` is its path, `-` for what has none, `forced` a kind that the caller gives."""
    if forced is not None:
        return FileKind(forced, parsed(text, name, forced) if forced in YAML_KINDS else None)
    path = PurePath(name)
    if path.name in KUSTOMIZATIONS or path.suffix in _TEMPLATES:
        return FileKind(TEMPLATE if _is_rendered_elsewhere(path, text) else None)
    if path.suffix in _SUFFIXES:
        return _yaml_kind(path, text)
    if path.name in {"devcontainer.json", ".devcontainer.json"}:
        return FileKind(DEVCONTAINER, parsed(text, name, DEVCONTAINER))
    if path.suffix == ".json":
        return _json_kind(path, text)
    if path.suffix == ".py":
        loads = "DataLoader" in text or "initial_seed" in text or ("SIGTERM" in text and TORCH.search(text))
        return FileKind(TRAINING_SCRIPT if loads else None)
    by_name = _by_name(path)
    content = by_name is None and (name == "-" or not path.suffix or text.startswith("#!"))
    return _by_content(path, text) if content else FileKind(by_name)


def _by_name(path: PurePath) -> str | None:
    if _DOCKERFILE.fullmatch(path.name) and path.suffix not in {".md", ".py"}:
        return DOCKERFILE
    if _MAKEFILE.fullmatch(path.name):
        return MAKEFILE
    return SHELL if path.suffix in _SHELLS else MARKDOWN if path.suffix in MARKUPS else None


def is_markdown(name: str, forced: str | None) -> bool:
    """Return whether a text is Markdown, in whose fences other texts stand."""
    return forced == MARKDOWN or (forced is None and PurePath(name).suffix in MARKUPS - {".rst"})


def may_hold(name: str, text: str) -> bool:
    """Return whether a text may be of a kind that is read, as far as its name and a look for words tell."""
    path = PurePath(name)
    if path.suffix in _SUFFIXES:
        return _MAY_HOLD.search(text) is not None
    return _by_name(path) is not None and _RUNS.search(text) is not None


def _by_content(path: PurePath, text: str) -> FileKind:
    if _SHEBANG.match(text):
        return FileKind(SHELL)
    if str(path) != "-":
        return FileKind(None)
    if text.lstrip().startswith("{"):
        found = parsed(text, "-", DEVCONTAINER)
        return FileKind(_of_json(text, found) or (DEVCONTAINER if found.nodes else None), found)
    if _IMPORT.search(text) and _is_python(text):
        return FileKind(TRAINING_SCRIPT)
    if re.search(r"^[ \t]*FROM[ \t]+\S", text, re.MULTILINE | re.IGNORECASE) and not re.search(r"^kind:", text, re.M):
        return FileKind(DOCKERFILE)
    found = documents(text, "-")
    yaml = STARTS_YAML.match(text) and "```" not in text  # no script with a here-document, nor Markdown
    kind = kind_of_documents(found) if found.broken is None else _of_broken(path, text) if yaml else None
    if kind is not None:
        return FileKind(kind, found)
    return FileKind(SHELL if _RUNS.search(text) else None)


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _yaml_kind(path: PurePath, text: str) -> FileKind:
    if not _MAY_HOLD.search(text):
        return FileKind(None)
    if _is_template(path, text):
        return FileKind(TEMPLATE)
    found = documents(without_definitions(text), str(path))
    if found.broken is not None:
        return FileKind(_of_broken(path, text), found)
    if "workflows" in path.parts and ".github" in path.parts:
        return FileKind(GITHUB, found)
    if path.name == PIPELINE:
        return FileKind(GITLAB, found)
    kind = kind_of_documents(found)
    if kind is not None and "{{" in text and any(map(_is_filled_in, found.nodes)):
        return FileKind(TEMPLATE)
    if kind is None and READ_BY_NAME.fullmatch(path.name) and re.search(r"^services:", text, re.MULTILINE):
        kind = COMPOSE  # one that lies over another, with no image of its own
    return FileKind(kind, found)


def _is_filled_in(root: Node) -> bool:
    """Return whether a value is `{{ name }}` without quotes, a mapping in the place of a key to YAML."""
    pairs = (pair for each in below(root) if isinstance(each, Mapping) for pair in each.pairs)
    return any(isinstance(key, Mapping) for key, _ in pairs)


def without_definitions(text: str) -> str:
    """Return YAML with its CustomResourceDefinitions as blanks: they start nothing, and are most of what is long."""
    if "kind: CustomResourceDefinition" not in text:
        return text
    parts = re.split(r"(^---[^\n]*\n)", text, flags=re.MULTILINE)
    return "".join(_blank(each) if _DEFINITION.search(each) else each for each in parts)


def _blank(text: str) -> str:
    return "\n".join(" " * len(each) for each in text.split("\n"))


def rendering_command(name: str, text: str) -> str:
    """Return what prints the text that a template becomes, as far as its name and words tell."""
    path = PurePath(name)
    if path.name in KUSTOMIZATIONS:
        return f"kustomize build {shlex.quote(str(path.parent))}"
    if "templates" in path.parts:
        chart = PurePath(*path.parts[: len(path.parts) - 1 - path.parts[::-1].index("templates")])
        return f"helm template {shlex.quote(str(chart))}"
    return "helm template CHART" if ".Values" in text else "a command that renders it"


def _json_kind(path: PurePath, text: str) -> FileKind:
    if not any(f'"{key}"' in text for key in _OF_JSON):
        return FileKind(None)
    found = parsed(text, str(path), DEVCONTAINER)
    return FileKind(_of_json(text, found), found)


def _of_json(text: str, found: Documents) -> str | None:
    return kind_of_documents(found) if found.broken is None else ECS if _OF_ECS.search(text) else None


def parsed(text: str, name: str, kind: str) -> Documents:
    """Return the documents of a text; comments of a devcontainer's JSON are read as blanks."""
    return documents(without_comments(text) if kind == DEVCONTAINER else text, name)


def without_comments(text: str) -> str:
    """Return JSON with its comments as blanks of the same length."""
    # Strings stay as they are, and so does a comment that nothing closes.
    pattern = re.compile(r'("(?:\\.|[^"\\])*"?)|//[^\n]*|/\*.*?(?:\*/|(\Z))', re.DOTALL)
    return pattern.sub(lambda it: it[0] if it.lastindex else re.sub(r"[^\n]", " ", it[0]), text)


def _is_rendered_elsewhere(path: PurePath, text: str) -> bool:
    """Return whether a file of a template engine holds containers, or a kustomization changes some."""
    if path.name in KUSTOMIZATIONS:
        return _CHANGES.search(text) is not None and any(map(_MAY_HOLD.search, _with_patches(path, text)))
    return re.search(r"\{[{%]", text) is not None and _MAY_HOLD.search(text) is not None


def _with_patches(path: PurePath, text: str) -> Iterator[str]:
    """Yield the text of a kustomization and those of the files beside it that it names."""
    yield text
    if re.search(r"^(?:helmCharts|components|transformers):", text, re.MULTILINE):
        yield "containers:"  # of files that stand elsewhere
    for name in re.findall(r"(?:^|path:|-)[ \t]+[\"']?([\w./-]+\.ya?ml)\b", text, re.MULTILINE):
        yield own_text(Path(path.parent, name), Path(path))


def _is_template(path: PurePath, text: str) -> bool:
    return (
        "{{" in text
        and not text.startswith(HEADER_START)  # whose code may have braces, and nothing expands it
        and bool(_TEMPLATED.search(text))
        and not re.search(r"^['\"]?on['\"]?:", text, re.MULTILINE)
        and ".github" not in path.parts
    )


def _of_broken(path: PurePath, text: str) -> str | None:
    """Return the kind of a text that is no YAML, by its name or its words; None where they don't tell."""
    if path.name == PIPELINE:
        return GITLAB
    images = re.search(r"\b(?:image|build):", text)
    if re.search(r"^services:", text, re.MULTILINE) and (images or READ_BY_NAME.fullmatch(path.name)):
        return COMPOSE
    if re.search(r"^apiVersion:", text, re.MULTILINE) and re.search(r"^kind:", text, re.MULTILINE):
        return KUBERNETES
    return GITHUB if path.parts[-3:-1] == (".github", "workflows") else None
