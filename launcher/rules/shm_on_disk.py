"""What is mounted at /dev/shm is a folder on a disk: an emptyDir without Memory, a claim, a named volume.

**Why it matters**: torch maps files in /dev/shm and takes them for memory. On a disk every batch is written out, the
job crawls or fills the node's disk, and a network file system breaks semaphores.

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
  volumes: [{name: dshm, emptyDir: {sizeLimit: 4Gi}}]
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
  volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: 4Gi}}]
```

**Fix**: none by itself: memory that was on disk then counts against the memory limit.

**References**: Kubernetes, Volumes, emptyDir.medium.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import DISK
from launcher.rules.written.model import DEFECTS, KUBERNETES, Finding, WrittenFile

CODE = "TL309"
NAME = "shm-on-disk"
SEVERITY = Severity.ERROR
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each /dev/shm that a disk is mounted at."""
    for written in file.containers:
        workload = written.workload
        if workload.shm.kind != DISK:
            continue
        pod = workload.format == KUBERNETES
        yield Finding(
            Diagnostic(
                CODE,
                "what is mounted at /dev/shm lies on a disk, not in memory",
                "use emptyDir: {medium: Memory, sizeLimit: …}" if pod else "delete the mount and state shm_size",
                why="batches that workers pass on are then written to the disk",
                severity=SEVERITY,
                span=workload.shm.span or workload.span,
                field=workload.place,
            ),
            NAME,
        )
