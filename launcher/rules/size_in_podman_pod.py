"""A container of a Podman pod states a size of /dev/shm, which belongs to the pod.

**Why it matters**: the pod's first container owns /dev/shm of all. Podman drops the size, or stops with
`cannot set shmsize when running in the host IPC Namespace`.

**Example**:

```shell
podman pod create --name train && podman run --pod train --shm-size 8g trainer:1 python train.py
```

**Use instead**:

```shell
podman pod create --name train --shm-size 8g && podman run --pod train trainer:1 python train.py
```

**Fix**: none by itself, since the pod may be made in another file.

**References**: podman pod create --shm-size; Quadlet, ShmSize of a .pod file.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile

CODE = "TL317"
NAME = "size-in-podman-pod"
SEVERITY = Severity.ERROR
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each podman run with both --pod and --shm-size."""
    for written in file.containers:
        workload, declared = written.workload, written.workload.shm.declared
        if not written.podman or declared is None or "--pod" not in workload.rest:
            continue
        yield Finding(
            Diagnostic(
                CODE,
                f"--shm-size {declared.text} is stated for a container of a pod, whose /dev/shm is the pod's",
                f"move --shm-size={declared.text} to podman pod create",
                why="the pod's first container owns /dev/shm of all its containers",
                severity=SEVERITY,
                span=declared.span,
                field=workload.place,
            ),
            NAME,
        )
