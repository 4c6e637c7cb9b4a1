"""A training command runs in a Deployment or another object that starts again whatever ends.

**Why it matters**: the pod of a Deployment is restarted when training has ended, with exit code 0 too
(`CrashLoopBackOff`): the job trains from the start for ever, and its GPU is never given back.

**Example**:

```kubernetes
apiVersion: apps/v1
kind: Deployment
metadata: {name: train}
spec:
  template:
    spec:
      containers: [{name: train, image: "trainer:1", command: [torchrun, train.py]}]
```

**Use instead**:

```kubernetes
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: train, image: "trainer:1", command: [torchrun, train.py]}]
```

**Fix**: none by itself.

**References**: Kubernetes, Jobs; Deployments allow restartPolicy Always alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.commands import is_training
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile

CODE = "TL334"
NAME = "training-in-deployment"
SEVERITY = Severity.WARNING
GROUP = DEFECTS
_FOR_EVER = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController"})


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for each container that trains in an object which runs for ever."""
    for written in file.containers:
        workload = written.workload
        if written.object_kind not in _FOR_EVER or "initContainers[" in workload.place:
            continue
        if any(map(is_training, written.argvs)):
            yield Finding(
                Diagnostic(
                    CODE,
                    f"a training command runs in a {written.object_kind}, which starts it again when it has ended",
                    "make it a Job with restartPolicy: Never",
                    why="such pods are restarted whatever their exit code, so training begins again and keeps its GPU",
                    severity=SEVERITY,
                    span=workload.span,
                    field=workload.place,
                ),
                NAME,
            )
