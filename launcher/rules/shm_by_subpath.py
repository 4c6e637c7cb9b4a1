"""/dev/shm is a folder inside a volume, by subPath.

**Why it matters**: the folder is not the volume's root: it has neither its mode 1777 nor a size of its own, and
whoever mounts the volume elsewhere fills it. Names of semaphores of two containers may meet.

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
    volumeMounts: [{name: dshm, mountPath: /dev/shm, subPath: shm}]
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

**Fix**: none by itself: another container may read the same folder.

**References**: Kubernetes, Volumes: using subPath.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.engine_values import is_shm
from launcher.rules.written.model import DEFECTS, KUBERNETES, Finding, WrittenFile, at, text_at
from launcher.yamltree.documents import Sequence

CODE = "TL337"
NAME = "shm-by-subpath"
SEVERITY = Severity.WARNING
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for each mount at /dev/shm with a subPath."""
    for written in file.containers if file.kind == KUBERNETES else ():
        listed = at(written.own, "volumeMounts")
        for mount in listed.items if isinstance(listed, Sequence) else ():
            path = at(mount, "subPath") or at(mount, "subPathExpr")
            if path is None or not is_shm(text_at(mount, "mountPath") or ""):
                continue
            yield Finding(
                Diagnostic(
                    CODE,
                    f"/dev/shm is the folder {path.raw} of the volume {text_at(mount, 'name')}",
                    "delete subPath, and give /dev/shm a volume of its own",
                    why="others that mount the volume fill it, and the folder has not the mode of /dev/shm",
                    severity=SEVERITY,
                    span=path.span,
                    field=written.workload.place,
                ),
                NAME,
            )
