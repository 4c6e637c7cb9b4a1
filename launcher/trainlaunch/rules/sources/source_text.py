"""A text that somebody wrote, as the rules of written texts see it, and what they say of it."""

from __future__ import annotations

import ast
from collections import abc
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from trainlaunch.diagnostics import Diagnostic, Edit, Severity, Span
from trainlaunch.formats.workload import Value, Workload, stated
from trainlaunch.rules.sources.near_files import NO_CONTEXT, BuildContext
from trainlaunch.rules.sources.near_scripts import NearScript
from trainlaunch.rules.sources.programs import Argv
from trainlaunch.yamltree.tolerant import Mapping, Node, Scalar, Sequence

DEFECTS, PRACTICE = "defects", "practice"
MARKUPS = frozenset({".md", ".markdown", ".mdx", ".rst"})
SHELL, COMPOSE, KUBERNETES, DOCKERFILE = "shell", "compose", "kubernetes", "dockerfile"
DEVCONTAINER, GITHUB, GITLAB, SAGEMAKER = "devcontainer", "github-actions", "gitlab-ci", "sagemaker"
TRAINING_SCRIPT, ECS = "training-script", "ecs"


class SpanSource(Protocol):
    """Anything that knows the place of an index of a text."""

    def span(self, start: int, end: int) -> Span:
        """Return the place of the characters from `start` to `end`."""


class SourceWord(NamedTuple):
    """A word of a command with its indexes in the text; `known` says that the text alone decides it."""

    text: str
    start: int
    end: int
    known: bool


class Instruction(NamedTuple):
    """One instruction of a Dockerfile: its word in capitals, the rest of it, and where both stand.

    `words` are those of its command: of the JSON form where it has that (`exec_form`), of the shell form else.
    """

    name: str
    value: str
    start: int
    end: int
    words: tuple[SourceWord, ...] = ()
    exec_form: bool = False


class Purpose(NamedTuple):
    """What a container is for: TRAINING, SERVING, OTHER or UNKNOWN of `programs`, and the signs that say so.

    `script` is what those of its commands show that lie beside the text or in it.
    """

    verdict: str
    signs: tuple[str, ...] = ()
    script: NearScript | None = None


class BuiltImage(NamedTuple):
    """What the Dockerfile says of which a text builds an image: its ENTRYPOINT, its CMD, and the image that it is from.

    What its last stage leaves to that image is empty. `base` has variables that only the build knows as they are
    written, `env` those of the image. `context` is of what it is built.
    """

    entrypoint: Argv = ()
    command: Argv = ()
    base: str = ""
    context: BuildContext = NO_CONTEXT
    env: abc.Mapping[str, Value[str]] = {}


class SourceContainer(NamedTuple):
    """One container of a text: `own` is its mapping, `pod` that of its pod, `object_kind` the kind around it.

    `argv` is its process as far as the text says, `argvs` are the commands in it. `add_shm` returns the edits that
    set a size of /dev/shm in bytes, none where the text takes no such edit. Before any rule is asked, `purpose` is
    weighed, and `argvs` also have what its image (`built`, where the text builds that) and shell scripts run.
    `indirect` says that only those train, and that a line or a script's path leads to them. `sized_beside`: another
    file, which is laid over this one, sets its /dev/shm.
    """

    workload: Workload
    argvs: tuple[Argv, ...] = ()
    own: Mapping | None = None
    pod: Mapping | None = None
    object_kind: str = ""
    add_shm: Callable[[int], tuple[Edit, ...]] | None = None
    podman: bool = False
    argv: Argv = ()
    purpose: Purpose = Purpose("")
    built: BuiltImage | None = None
    indirect: bool = False
    sized_beside: bool = False


def context_of(container: SourceContainer) -> BuildContext:
    """Return of what a container's image is built, NO_CONTEXT for none."""
    if container.built is not None:
        context = container.built.context._replace(
            inside=stated(container.workload.working_dir) or container.built.context.inside
        )
        entered = any(each[:1] == ("cd",) for each in container.argvs)  # another folder, whose files these may not be
        return context._replace(copies=()) if entered else context
    return BuildContext(text_at(container.own, "build") or text_at(container.own, "build", "context") or "")


class SourceText(NamedTuple):
    """One text: its kind, its containers, and what a reader found beside them.

    `nodes` are a YAML text's documents, `commands` the simple commands of its shell parts.
    """

    kind: str
    text: str
    source: SpanSource
    containers: tuple[SourceContainer, ...] = ()
    nodes: tuple[Node, ...] = ()
    commands: tuple[tuple[SourceWord, ...], ...] = ()
    instructions: tuple[Instruction, ...] = ()
    tree: ast.Module | None = None

    @property
    def is_document(self) -> bool:
        """Whether it tells people what to run."""
        return self.source.span(0, 0).file.endswith((*MARKUPS,))


class TextFinding(NamedTuple):
    """What a rule says: `edits` carry the fix out, unasked if `safe`.

    `about` is the container's place where the diagnostic has another field or none.
    """

    diagnostic: Diagnostic
    name: str
    edits: tuple[Edit, ...] = ()
    safe: bool = False
    about: str = ""
    group: str = DEFECTS
    purpose: Purpose | None = None

    @property
    def severity(self) -> Severity:
        """How much it matters."""
        return self.diagnostic.severity

    @property
    def place(self) -> str:
        """What it is about: a container's place, a field of its own, or nothing."""
        return self.about or self.diagnostic.field


def at(node: Node | None, *path: str | int) -> Node | None:
    """Return the node at a path below another one; None where there is none."""
    for step in path:
        if isinstance(node, Mapping) and isinstance(step, str):
            node = node.items.get(step)
        elif isinstance(node, Sequence) and isinstance(step, int) and -len(node.items) <= step < len(node.items):
            node = node.items[step]
        else:
            return None
    return node


def text_at(node: Node | None, *path: str | int) -> str | None:
    """Return the text of a scalar at a path; None where there is none."""
    found = at(node, *path)
    return found.text if isinstance(found, Scalar) else None


def items_in(node: Node | None) -> tuple[Node, ...]:
    """Return what a list holds; nothing of anything else."""
    return node.items if isinstance(node, Sequence) else ()


def entries_in(node: Node | None) -> dict[str, Node]:
    """Return what a mapping holds; nothing of anything else."""
    return node.items if isinstance(node, Mapping) else {}


def below(node: Node | None) -> Iterator[Node]:
    """Yield a node and all below it, in source order."""
    if node is None:
        return
    yield node
    for each in (*items_in(node), *entries_in(node).values()):
        yield from below(each)


def field(node: Node | None, *path: str) -> Node | None:
    """Return the node at a path, each of whose keys may start with a capital, as in CloudFormation."""
    for key in path:
        node = at(node, key) or at(node, key[0].upper() + key[1:])
    return node


def is_fargate(task: Mapping | None) -> bool:
    """Return whether a task definition is for Fargate alone."""
    words = {each.text for each in items_in(field(task, "requiresCompatibilities")) if isinstance(each, Scalar)}
    return words == {"FARGATE"}
