"""/dev/shm is mounted read-only.

**Why it matters**: the first worker can't write its batch: `OSError: [Errno 30] Read-only file system: '/psm_…'`.

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
    volumeMounts: [{name: dshm, mountPath: /dev/shm, readOnly: true}]
  volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: 4Gi}}]
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

**Fix**: none by itself.

**References**: Kubernetes API, VolumeMount.readOnly.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.engine_values import is_shm
from launcher.formats.workload import Known
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile

CODE = "TL331"
NAME = "shm-read-only"
SEVERITY = Severity.ERROR
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each mount at /dev/shm that can't be written."""
    for written in file.containers:
        there = [
            each.target
            for each in written.workload.mounts
            if each.read_only and isinstance(each.target, Known) and is_shm(each.target.value)
        ]
        for target in there[-1:]:
            yield Finding(
                Diagnostic(
                    CODE,
                    "/dev/shm is mounted read-only, and workers write there",
                    "delete the option that makes it read-only",
                    why="a worker passes each batch on through a file that it makes in /dev/shm",
                    severity=SEVERITY,
                    span=target.span,
                    field=written.workload.place,
                ),
                NAME,
            )
