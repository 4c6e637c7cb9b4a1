"""A volume in memory is declared and no container mounts it at /dev/shm.

**Why it matters**: a volume without a mount does nothing. /dev/shm keeps the runtime's 64 MiB and workers die of
`Bus error`, though the manifest seems to size it.

**Example**:

```kubernetes
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - {name: train, image: "trainer:1"}
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

**Fix**: none by itself: of several containers only you know which one trains.

**References**: Kubernetes, Volumes: spec.volumes and volumeMounts.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import ABSENT
from launcher.rules.written.model import DEFECTS, Finding, Written, WrittenFile, at, text_at
from launcher.yamltree.documents import Mapping, Node, Sequence

CODE = "TL310"
NAME = "shm-volume-unmounted"
SEVERITY = Severity.ERROR
GROUP = DEFECTS
_INJECTED = "gke-gcsfuse-"  # mounted by a sidecar that GKE adds


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each Memory emptyDir of a pod that none of its containers mounts anywhere."""
    pods: dict[int, list[Written]] = {}
    for written in file.containers:
        if written.pod is not None:
            pods.setdefault(id(written.pod), []).append(written)
    for containers in pods.values():
        pod = containers[0].pod
        volumes = at(pod, "volumes")
        if any(each.workload.shm.kind != ABSENT for each in containers):
            continue  # the pod sizes /dev/shm by another volume
        if pod is None or not isinstance(volumes, Sequence) or isinstance(at(pod, "volumeMounts"), Sequence):
            continue
        mounted = {text_at(each, "name") for written in containers for each in _mounts(written.own)}
        for volume in volumes.items:
            name = text_at(volume, "name")
            if (
                name
                and name not in mounted
                and not name.startswith(_INJECTED)
                and text_at(volume, "emptyDir", "medium") == "Memory"
            ):
                yield _finding(containers, volume, name)


def _mounts(own: Mapping | None) -> tuple[Node, ...]:
    listed = at(own, "volumeMounts")
    return listed.items if isinstance(listed, Sequence) else ()


def _finding(containers: list[Written], volume: Node, name: str) -> Finding:
    place = at(volume, "name") or volume
    main = next((each for each in containers if "initContainers" not in each.workload.place), containers[0])
    return Finding(
        Diagnostic(
            CODE,
            f"the volume {name} lies in memory, and no container mounts it",
            f"add {{name: {name}, mountPath: /dev/shm}} to volumeMounts of the container that trains",
            why="a volume without a mount does nothing; /dev/shm keeps 64 MiB",
            severity=SEVERITY,
            span=place.span,
            field=main.workload.place,
        ),
        NAME,
    )
