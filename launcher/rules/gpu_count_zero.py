"""A request asks for 0 GPUs, where the index 0 may be meant.

**Why it matters**: `--gpus 0` is a count: the container gets no GPU and starts all the same. Training runs on the
CPU, or stops with `No CUDA GPUs are available`.

**Example**:

```shell
docker run --rm --gpus 0 --shm-size=8g trainer:1 python train.py
```

**Use instead**:

```shell
docker run --rm --gpus device=0 --shm-size=8g trainer:1 python train.py
```

**Fix**: none by itself: no GPU may be meant.

**References**: docker run --gpus.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import Known
from launcher.rules.written.model import COMPOSE, DEFECTS, Finding, WrittenFile

CODE = "TL365"
NAME = "gpu-count-zero"
SEVERITY = Severity.WARNING
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for each container of docker or Compose that asks for no GPU in a request for some."""
    for written in file.containers:
        workload, gpus = written.workload, written.workload.gpus
        if workload.format not in {"docker_run", COMPOSE} or not isinstance(gpus, Known):
            continue
        if gpus.value.all or gpus.value.ids or gpus.value.number:
            continue
        right = "device_ids: ['0']" if workload.format == COMPOSE else "--gpus device=0"
        yield Finding(
            Diagnostic(
                CODE,
                "the request for GPUs has a count of 0",
                f"write {right} for the first GPU, or delete the request",
                why="a bare number is a count; GPUs are named by device",
                severity=SEVERITY,
                span=gpus.span,
                field=workload.place,
            ),
            NAME,
        )
