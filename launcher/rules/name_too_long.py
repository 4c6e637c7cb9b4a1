"""A name is longer than Kubernetes takes, or than the label that it becomes.

**Why it matters**: the API server refuses the object (`must be no more than 63 characters`), or takes it and its
controller can't make pods: a Job's name becomes a label of them, a CronJob's gets 11 characters more.

**Example**:

```kubernetes
apiVersion: batch/v1
kind: Job
metadata: {name: train-resnet50-on-imagenet-with-mixed-precision-and-cosine-schedule-v2}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: train, image: "trainer:1"}]
```

**Use instead**:

```kubernetes
apiVersion: batch/v1
kind: Job
metadata: {name: train-resnet50}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: train, image: "trainer:1"}]
```

**Fix**: none by itself: other objects may name this one.

**References**: Kubernetes, Object names and IDs; Labels; CronJob.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.model import DEFECTS, KUBERNETES, Finding, WrittenFile, at, text_at
from launcher.yamltree.documents import Node, Scalar, Sequence

CODE = "TL364"
NAME = "name-too-long"
SEVERITY = Severity.ERROR
GROUP = DEFECTS
_LABEL = 63
# As far as a name is refused, or its pods are: a CronJob adds 11 characters, a StatefulSet's label 11 of a hash.
_LONGEST = {"Job": _LABEL, "Service": _LABEL, "CronJob": 52, "StatefulSet": 52, "JobSet": 52}


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each name of an object or a container that is too long."""
    if file.kind != KUBERNETES:
        return
    for root in file.nodes:
        for each in _objects(root):
            kind, name = text_at(each, "kind") or "", at(each, "metadata", "name")
            longest = _LONGEST.get(kind)
            if longest is not None and isinstance(name, Scalar) and len(name.text) > longest and "{{" not in name.text:
                yield _finding(f"the name of a {kind}", name, longest, "")
    for written in file.containers:
        name = at(written.own, "name")
        if isinstance(name, Scalar) and len(name.text) > _LABEL and "{{" not in name.text:
            yield _finding("the name of a container", name, _LABEL, written.workload.place)


def _objects(root: Node) -> Iterator[Node]:
    items = at(root, "items")
    if isinstance(items, Sequence) and (text_at(root, "kind") or "").endswith("List"):
        yield from items.items
    else:
        yield root


def _finding(what: str, name: Scalar, longest: int, place: str) -> Finding:
    return Finding(
        Diagnostic(
            CODE,
            f"{what} has {len(name.text)} characters, and {longest} are allowed",
            f"choose a name of at most {longest} characters",
            why="it becomes a label or a host name, which hold 63 characters with what is added",
            severity=SEVERITY,
            span=name.span,
            field=place,
        ),
        NAME,
    )
