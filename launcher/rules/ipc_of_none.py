"""The container has no /dev/shm at all, by its ipc mode.

**Why it matters**: with `ipc: none` the folder is not there. DataLoader workers then stop at their first batch: `No
such file or directory: '/dev/shm/…'`.

**Example**:

```shell
docker run --rm --ipc=none trainer:1 python train.py
```

**Use instead**:

```shell
docker run --rm --shm-size=2g trainer:1 python train.py
```

**Fix**: delete the mode and state a size.

**References**: docker run --ipc.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import NONE
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile

CODE = "TL346"
NAME = "ipc-of-none"
SEVERITY = Severity.INFO
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an info for each container without /dev/shm, if no size beside it says that one is meant."""
    for written in file.containers:
        workload, shm = written.workload, written.workload.shm
        if shm.kind != NONE or shm.declared is not None:
            continue
        yield Finding(
            Diagnostic(
                CODE,
                "ipc none leaves the container without /dev/shm",
                "delete the ipc mode and state a size",
                why="the runtime mounts nothing there, and workers, NCCL and semaphores need it",
                severity=SEVERITY,
                span=shm.span or workload.span,
                field=workload.place,
            ),
            NAME,
        )
