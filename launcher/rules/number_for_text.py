"""A value is a number or a truth value to YAML where Kubernetes or Compose takes text alone.

**Why it matters**: the API server refuses the object: `cannot unmarshal number into Go struct field EnvVar.value of
type string`. To kubectl `yes`, `on` and `off` are truth values too.

**Example**:

```kubernetes
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - name: train
    image: trainer:1
    env: [{name: OMP_NUM_THREADS, value: 4}]
```

**Use instead**:

```kubernetes
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - name: train
    image: trainer:1
    env: [{name: OMP_NUM_THREADS, value: "4"}]
```

**Fix**: `--fix` writes the quotes; safe, since the object is refused without.

**References**: Kubernetes API reference, EnvVar; YAML 1.1, bool.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Edit, Severity
from launcher.formats.kubernetes.fields import is_null
from launcher.rules.written.model import COMPOSE, DEFECTS, KUBERNETES, Finding, Written, WrittenFile, at
from launcher.yamltree.documents import Mapping, Node, Scalar, Sequence
from launcher.yamltree.scalars import value_of

CODE = "TL361"
NAME = "number-for-text"
SEVERITY = Severity.ERROR
GROUP = DEFECTS
_WHY = "the file is refused: `cannot unmarshal number` by Kubernetes, `must be a string` by Compose"


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each variable, word of a command, label or annotation that is no text to kubectl."""
    if file.kind == COMPOSE:
        yield from _of_services(file)
    if file.kind != KUBERNETES:
        return
    seen: set[int] = set()
    for written in file.containers:
        for what, node in _texts(written):
            if node.start not in seen and _is_other(node):
                seen.add(node.start)
                yield _finding(what, node, written.workload.place)
    for root in file.nodes:
        for what, node in _of_metadata(root):
            if node.start not in seen and _is_other(node):
                seen.add(node.start)
                yield _finding(what, node, "")


def _of_services(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each word of a service's command that is no text to Compose."""
    for written in file.containers:
        for key in ("command", "entrypoint"):
            words = at(written.own, key)
            for each in words.items if isinstance(words, Sequence) else ():
                if isinstance(each, Scalar) and not isinstance(value_of(each), str):
                    yield _finding(f"a word of {key}", each, written.workload.place)


def _texts(written: Written) -> Iterator[tuple[str, Scalar]]:
    listed = at(written.own, "env")
    for each in listed.items if isinstance(listed, Sequence) else ():
        value = at(each, "value")
        if isinstance(value, Scalar):
            yield "the variable's value", value
    for key in ("command", "args"):
        words = at(written.own, key)
        yield from (
            (f"a word of {key}", each)
            for each in (words.items if isinstance(words, Sequence) else ())
            if isinstance(each, Scalar)
        )
    yield from _values(at(written.pod, "nodeSelector"), "a label of nodeSelector")


def _of_metadata(root: Node) -> Iterator[tuple[str, Scalar]]:
    for path in ((), ("spec", "template")):
        metadata = at(root, *path, "metadata")
        yield from _values(at(metadata, "labels"), "a label")
        yield from _values(at(metadata, "annotations"), "an annotation")


def _values(node: Node | None, what: str) -> Iterator[tuple[str, Scalar]]:
    for each in node.items.values() if isinstance(node, Mapping) else ():
        if isinstance(each, Scalar):
            yield what, each


def _is_other(node: Scalar) -> bool:
    return not is_null(node) and not isinstance(value_of(node, yaml11=True), str) and "{{" not in node.raw


def _finding(what: str, node: Scalar, place: str) -> Finding:
    kind = "a truth value" if isinstance(value_of(node, yaml11=True), bool) else "a number"
    plain = node.plain and "\n" not in node.raw and node.tag is None
    return Finding(
        Diagnostic(
            CODE,
            f"{what} is {node.raw}, {kind} to YAML, where text is expected",
            f'write "{node.raw}"',
            why=_WHY,
            severity=SEVERITY,
            span=node.span,
            field=place,
        ),
        NAME,
        (Edit(node.span, f'"{node.raw}"'),) if plain else (),
        safe=plain,
    )
