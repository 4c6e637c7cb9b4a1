"""A variable of a container is called like a size of /dev/shm, and sizes nothing.

**Why it matters**: no engine reads it: /dev/shm keeps the runtime's 64 MiB, and workers die of `Bus error` though the
text seems to size it.

**Example**:

```compose
services:
  train: {image: "trainer:1", environment: {SHM_SIZE: 8g}, command: python train.py}
```

**Use instead**:

```compose
services:
  train: {image: "trainer:1", shm_size: 8g, command: python train.py}
```

An error where the container trains.

**Fix**: none by itself: a program of the image may read the variable for something of its own.

**References**: docker run --shm-size; Compose, shm_size; Kubernetes emptyDir with medium Memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import ABSENT, Known
from launcher.rules.written.evidence import has_gpu, is_fragment, size_text, suggested_shm, trains, workers_of
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile

CODE = "TL373"
NAME = "shm-size-in-environment"
SEVERITY = Severity.WARNING
GROUP = DEFECTS
_NAME = re.compile(r"(?:DOCKER_)?(?:DEV_?)?SHM(?:EM)?_?SIZE", re.IGNORECASE)


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a finding for each such variable of a container that trains or has a GPU and whose /dev/shm has no size."""
    for written in file.containers:
        workload = written.workload
        if workload.shm.kind != ABSENT or is_fragment(written) or not (trains(written) or has_gpu(workload)):
            continue
        for name, value in workload.env.items():
            if not _NAME.fullmatch(name) or not isinstance(value, Known):
                continue
            workers = workers_of(written)
            yield Finding(
                Diagnostic(
                    CODE,
                    f"the variable {name} {value.text} sizes nothing, and /dev/shm has 64 MiB",
                    f"state the size for the container: {size_text(suggested_shm(workload, workers), written)}",
                    why="engines read flags and keys, no variables",
                    severity=Severity.ERROR if trains(written) else SEVERITY,
                    span=value.span,
                    field=workload.place,
                ),
                NAME,
            )
