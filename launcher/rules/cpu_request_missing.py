"""A pod states DataLoader workers and no CPUs, as a request or a limit.

**Why it matters**: where the node is busy such a pod gets what others leave, and the GPU waits for its workers;
os.cpu_count() inside is the node's number.

**Example**:

```kubernetes
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - name: train
    image: trainer:1
    command: [python, train.py, --num-workers, "4"]
    resources: {limits: {memory: 16Gi}}
    volumeMounts: [{name: dshm, mountPath: /dev/shm}]
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
    command: [python, train.py, --num-workers, "4"]
    resources: {limits: {memory: 16Gi, cpu: 4}}
    volumeMounts: [{name: dshm, mountPath: /dev/shm}]
  volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: 4Gi}}]
```

**Fix**: none by itself: a namespace may have defaults (LimitRange).

**References**: Kubernetes, Resource management for pods and containers.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.evidence import is_fragment, workers_of
from launcher.rules.written.model import KUBERNETES, PRACTICE, Finding, WrittenFile

CODE = "TL354"
NAME = "cpu-request-missing"
SEVERITY = Severity.INFO
GROUP = PRACTICE


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an info for each container with stated workers and no stated CPUs."""
    for written in file.containers if file.kind == KUBERNETES else ():
        workload = written.workload
        workers = workers_of(written)
        if not workers or workload.cpus is not None or is_fragment(written):
            continue
        yield Finding(
            Diagnostic(
                CODE,
                f"{workers} DataLoader workers run without a request or a limit of CPUs",
                f"set resources.requests.cpu to {workers}",
                why="a pod without a request gets what others leave of a busy node",
                severity=SEVERITY,
                span=workload.span,
                field=workload.place,
            ),
            NAME,
        )
