"""A /dev/shm in memory without a size: it may grow to the memory limit, or to the whole node.

**Why it matters**: a Memory emptyDir without sizeLimit is as large as the pod's memory limit, and without that as the
node's allocatable memory. What fills it takes memory from all pods of the node (`The node was low on resource`).

**Example**:

```kubernetes
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - name: train
    image: trainer:1
    resources: {limits: {memory: 16Gi}}
    volumeMounts: [{name: dshm, mountPath: /dev/shm}]
  volumes: [{name: dshm, emptyDir: {medium: Memory}}]
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
    resources: {limits: {memory: 16Gi}}
    volumeMounts: [{name: dshm, mountPath: /dev/shm}]
  volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: 2Gi}}]
```

A warning without a memory limit, an info with one, which then is the size.

**Fix**: none by itself, since a size that is too small ends the job; the message has one to start from.

**References**: kubernetes pkg/volume/emptydir (calculateEmptyDirMemorySize); docs/sizing.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import UNSIZED
from launcher.rules.written.evidence import size_text, suggested_shm, workers_of
from launcher.rules.written.model import DEFECTS, KUBERNETES, Finding, WrittenFile

CODE = "TL307"
NAME = "shm-unlimited"
SEVERITY = Severity.WARNING
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a finding for each /dev/shm in memory whose size nothing states."""
    for written in file.containers:
        workload = written.workload
        if workload.shm.kind != UNSIZED:
            continue
        limited = workload.memory is not None
        size = size_text(suggested_shm(workload, workers_of(written)), written)
        key = "sizeLimit" if workload.format == KUBERNETES else "size"
        fix = f"add {key} {size}" + ("" if limited else ", and a memory limit above it")
        bound = "the memory limit" if limited else "all the memory of the node"
        yield Finding(
            Diagnostic(
                CODE,
                f"/dev/shm lies in memory and has no size: {bound} is its bound",
                fix,
                why="it is min(node's allocatable memory, memory limit, sizeLimit), of those that are stated",
                severity=Severity.INFO if limited else SEVERITY,
                span=workload.shm.span or workload.span,
                field=workload.place,
            ),
            NAME,
        )
