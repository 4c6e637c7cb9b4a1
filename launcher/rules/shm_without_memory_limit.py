"""A pod's /dev/shm has a size and the container no memory limit, so the scheduler reserves nothing for it.

**Why it matters**: a Memory emptyDir counts as memory of the container and is no part of its requests. A pod without
requests is the first that a full node evicts (`The node was low on resource: memory`).

**Example**:

```kubernetes
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - name: train
    image: trainer:1
    volumeMounts: [{name: dshm, mountPath: /dev/shm}]
  volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: 80Gi}}]
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
    resources: {limits: {memory: 120Gi}}
    volumeMounts: [{name: dshm, mountPath: /dev/shm}]
  volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: 80Gi}}]
```

**Fix**: none by itself: the limit is sizeLimit and what the processes use.

**References**: Kubernetes, Volumes, emptyDir: memory-backed volumes count against the container's memory limit.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import SIZE, Known
from launcher.rules.written.evidence import is_fragment
from launcher.rules.written.model import DEFECTS, KUBERNETES, Finding, WrittenFile

CODE = "TL308"
NAME = "shm-without-memory-limit"
SEVERITY = Severity.WARNING
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for each container of a pod with a sized /dev/shm, no memory limit and no memory request."""
    for written in file.containers:
        workload, size = written.workload, written.workload.shm.size
        asked = workload.rest.get("container.resources.requests.memory")
        if workload.format != KUBERNETES or workload.shm.kind != SIZE or not isinstance(size, Known):
            continue
        if workload.memory is not None or asked is not None or written.object_kind.endswith("TrainingRuntime"):
            continue
        if is_fragment(written):
            continue
        yield Finding(
            Diagnostic(
                CODE,
                f"/dev/shm may take {size.text}, and the container has neither a memory limit nor a request",
                f"set resources.limits.memory to {size.text} plus what the processes use",
                why="pages of /dev/shm are the container's memory; the scheduler reserves only what is requested",
                severity=SEVERITY,
                span=size.span,
                field=workload.place,
            ),
            NAME,
        )
