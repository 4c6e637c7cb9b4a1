"""An ipc mode and a size of /dev/shm stand together, and the size is not in effect.

**Why it matters**: with `ipc: host` the container has the host's /dev/shm, whatever size is stated. Docker and Compose
say nothing; Podman refuses: `cannot set shmsize when running in the {host } IPC Namespace`, exit 125.

**Example**:

```compose
services:
  train: {image: "trainer:1", ipc: host, shm_size: 16gb}
```

**Use instead**:

```compose
services:
  train: {image: "trainer:1", shm_size: 16gb}
```

A warning with Docker and Compose, an error with Podman.

**Fix**: none by itself: without `ipc: host` processes of other containers are no longer reached.

**References**: docker run --ipc; podman run --shm-size.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import CONTAINER, HOST, NONE
from launcher.rules.written.model import COMPOSE, DEFECTS, ECS, Finding, WrittenFile

CODE = "TL315"
NAME = "ipc-with-size"
SEVERITY = Severity.WARNING
GROUP = DEFECTS
_WORDS = {COMPOSE: ("ipc", "shm_size"), ECS: ("ipcMode", "sharedMemorySize")}


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a finding for each size that an ipc mode takes the effect of."""
    for written in file.containers:
        workload, shm = written.workload, written.workload.shm
        if shm.kind not in {HOST, CONTAINER, NONE} or shm.declared is None or shm.span is None:
            continue
        if "--pod" in workload.rest:
            continue
        mode, size = _WORDS.get(workload.format, ("--ipc", "--shm-size"))
        why = "the container then has the /dev/shm of what it shares, at that one's size"
        if written.podman:
            why = "podman stops with: cannot set shmsize when running in the {host } IPC Namespace (exit 125)"
        yield Finding(
            Diagnostic(
                CODE,
                f"{mode} is {shm.kind}, so {size} {shm.declared.text} is not in effect",
                f"delete {mode}, and keep {size}",
                why=why,
                severity=Severity.ERROR if written.podman else SEVERITY,
                span=shm.span,
                field=workload.place,
            ),
            NAME,
        )
