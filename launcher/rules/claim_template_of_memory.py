"""An emptyDir stands under volumeClaimTemplates, which holds claims only.

**Why it matters**: Argo and StatefulSets make a claim of each item, on a disk, or refuse the object; /dev/shm never is
the sized memory that was meant.

**Example**:

```kubernetes
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: train-}
spec:
  entrypoint: train
  volumeClaimTemplates:
  - metadata: {name: dshm}
    emptyDir: {medium: Memory, sizeLimit: 2Gi}
  templates:
  - name: train
    container:
      image: trainer:1
      volumeMounts: [{name: dshm, mountPath: /dev/shm}]
```

**Use instead**:

```kubernetes
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: train-}
spec:
  entrypoint: train
  volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: 2Gi}}]
  templates:
  - name: train
    container:
      image: trainer:1
      resources: {limits: {memory: 8Gi}}
      volumeMounts: [{name: dshm, mountPath: /dev/shm}]
```

**Fix**: none by itself.

**References**: Argo Workflows, WorkflowSpec: volumes and volumeClaimTemplates.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.model import DEFECTS, KUBERNETES, Finding, WrittenFile, at, below
from launcher.yamltree.documents import Mapping, Sequence

CODE = "TL312"
NAME = "claim-template-of-memory"
SEVERITY = Severity.ERROR
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each emptyDir among the templates of claims."""
    if file.kind != KUBERNETES:
        return
    for node in (each for root in file.nodes for each in below(root)):
        templates = at(node, "volumeClaimTemplates")
        for item in templates.items if isinstance(templates, Sequence) else ():
            if isinstance(item, Mapping) and "emptyDir" in item.keys:
                yield Finding(
                    Diagnostic(
                        CODE,
                        "volumeClaimTemplates holds claims, and this is an emptyDir",
                        "move it to spec.volumes, as {name: …, emptyDir: {medium: Memory, sizeLimit: …}}",
                        why="each item of volumeClaimTemplates becomes a claim on a disk, whatever else it says",
                        severity=SEVERITY,
                        span=item.keys["emptyDir"].span,
                    ),
                    NAME,
                )
