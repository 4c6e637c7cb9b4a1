"""Two mounts of one container stand at /dev/shm.

**Why it matters**: Kubernetes refuses the pod (`mountPath: Invalid value: "/dev/shm": must be unique`), docker two
mounts of one kind (`Duplicate mount point: /dev/shm`); of a `--tmpfs` and a `--mount` only the second is seen.

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
    volumeMounts: [{name: dshm, mountPath: /dev/shm}, {name: dshm, mountPath: /dev/shm}]
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

**Fix**: none by itself: keep the one whose size is meant.

**References**: Kubernetes, Volumes; docker run --mount.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.engine_values import is_shm
from launcher.formats.workload import Known
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile

CODE = "TL336"
NAME = "shm-mounted-twice"
SEVERITY = Severity.ERROR
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each container with more than one mount at /dev/shm."""
    for written in file.containers:
        targets = [each.target for each in written.workload.mounts]
        there = [each for each in targets if isinstance(each, Known) and is_shm(each.value)]
        if len(there) < 2:
            continue
        yield Finding(
            Diagnostic(
                CODE,
                f"{len(there)} mounts stand at /dev/shm",
                "delete all but one",
                why="Kubernetes and docker refuse two mounts at one place, or show the last alone",
                severity=SEVERITY,
                span=there[-1].span,
                field=written.workload.place,
            ),
            NAME,
        )
