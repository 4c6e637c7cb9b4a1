"""volumeMounts stands beside the containers instead of in one.

**Why it matters**: a pod's spec has no such field. With strict validation the API server answers
`unknown field "spec.volumeMounts"`; without it the field is dropped and /dev/shm keeps 64 MiB.

**Example**:

```kubernetes
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: 4Gi}}]
  volumeMounts: [{name: dshm, mountPath: /dev/shm}]
  containers:
  - name: train
    image: trainer:1
    resources: {limits: {memory: 30Gi}}
```

**Use instead**:

```kubernetes
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: 4Gi}}]
  containers:
  - name: train
    image: trainer:1
    resources: {limits: {memory: 30Gi}}
    volumeMounts: [{name: dshm, mountPath: /dev/shm}]
```

**Fix**: none by itself: of several containers only you know which one is meant.

**References**: Kubernetes API, PodSpec and Container.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile
from launcher.yamltree.documents import Sequence

CODE = "TL311"
NAME = "mounts-outside-container"
SEVERITY = Severity.ERROR
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each pod with volumeMounts of its own."""
    seen: set[int] = set()
    for written in file.containers:
        pod = written.pod
        if pod is None or id(pod) in seen or pod is written.own:
            continue
        seen.add(id(pod))
        key = pod.keys.get("volumeMounts")
        if key is None or not isinstance(pod.items.get("volumeMounts"), Sequence):
            continue
        yield Finding(
            Diagnostic(
                CODE,
                "volumeMounts is not a field of a pod's spec, so nothing is mounted",
                "move it into the container that trains, as containers[0].volumeMounts",
                why="the API server refuses or drops it; each container has volumeMounts of its own",
                severity=SEVERITY,
                span=key.span,
                field=written.workload.place,
            ),
            NAME,
        )
