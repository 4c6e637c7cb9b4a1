"""A folder of the host is mounted at /dev/shm.

**Why it matters**: the container then shares /dev/shm with the host and all others that do so: its size is the host's,
leftovers of dead jobs stay, and names of semaphores may meet. A mount of the whole /dev does the same.

**Example**:

```shell
docker run --rm --gpus all -v /dev/shm:/dev/shm trainer:1 python train.py
```

**Use instead**:

```shell
docker run --rm --gpus all --shm-size=8g trainer:1 python train.py
```

**Fix**: none by itself: another container may be meant to read what this one writes.

**References**: docker run --shm-size; Kubernetes emptyDir with medium Memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import BIND
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile

CODE = "TL330"
NAME = "shm-of-host"
SEVERITY = Severity.WARNING
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for each /dev/shm that is a folder of the host."""
    for written in file.containers:
        workload = written.workload
        if workload.shm.kind != BIND:
            continue
        yield Finding(
            Diagnostic(
                CODE,
                "a folder of the host is mounted at /dev/shm, so its size and leftovers are the host's",
                "delete the mount and state a size",
                why="what dead jobs left there stays, and fills it for all that share it",
                severity=SEVERITY,
                span=workload.shm.span or workload.span,
                field=workload.place,
            ),
            NAME,
        )
