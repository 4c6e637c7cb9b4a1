"""The container takes the host's /dev/shm by its ipc mode.

**Why it matters**: it works where the host's /dev/shm is large. In minikube and kind the host is a container itself
with 64 MiB; elsewhere leftovers of a dead job stay and fill it for all (`No space left on device`).

**Example**:

```kubernetes
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  hostIPC: true
  containers: [{name: train, image: "pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime"}]
```

**Use instead**:

```kubernetes
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - name: train
    image: pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime
    resources: {limits: {memory: 16Gi}}
    volumeMounts: [{name: dshm, mountPath: /dev/shm}]
  volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: 4Gi}}]
```

**Fix**: none by itself: without it processes of other containers are no longer reached.

**References**: docker run --ipc=host; Kubernetes Pod Security Standards (hostIPC is not allowed by baseline).
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import HOST
from launcher.rules.written.model import DEFECTS, KUBERNETES, Finding, WrittenFile

CODE = "TL316"
NAME = "ipc-of-host"
SEVERITY = Severity.INFO
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an info for each container, once a pod, with the host's /dev/shm and no size beside it."""
    seen: set[int] = set()
    for written in file.containers:
        workload, shm = written.workload, written.workload.shm
        if shm.kind != HOST or shm.declared is not None or shm.span is None or id(written.pod) in seen:
            continue
        if written.pod is not None:
            seen.add(id(written.pod))
        pod = workload.format == KUBERNETES
        yield Finding(
            Diagnostic(
                CODE,
                "/dev/shm is the host's, whose size and leftovers nothing here states",
                "mount an emptyDir of medium Memory with a sizeLimit at /dev/shm" if pod else "state a size instead",
                why="hosts of minikube and kind have 64 MiB; a shared one keeps what dead jobs left in it",
                severity=SEVERITY,
                span=shm.span,
                field=workload.place,
            ),
            NAME,
        )
