"""A training command with a GPU states 0 DataLoader workers.

**Why it matters**: batches are then loaded by the training process itself, and the GPU waits for each. Measured on 16
CPUs with JPEG decoding: 287 images/s without workers, 2,713 with 16.

**Example**:

```shell
docker run --rm --gpus all --shm-size=8g trainer:1 python train.py --num-workers 0
```

**Use instead**:

```shell
docker run --rm --gpus all --shm-size=8g trainer:1 python train.py --num-workers 4
```

**Fix**: none by itself: workers draw other random numbers, and a script may not stand them.

**References**: docs/sizing.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.evidence import command_span, has_gpu, trains, workers_of
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile

CODE = "TL353"
NAME = "workers-zero-on-gpu"
SEVERITY = Severity.INFO
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an info for each training container with a GPU whose command states 0 workers."""
    for written in file.containers:
        workload = written.workload
        if not trains(written) or not has_gpu(workload) or workers_of(written) != 0:
            continue
        yield Finding(
            Diagnostic(
                CODE,
                "0 DataLoader workers are stated, so the GPU waits while each batch is loaded",
                "state about one worker for each CPU of the container, and its /dev/shm",
                why="without workers the training process loads every batch itself",
                severity=SEVERITY,
                span=command_span(workload),
                field=workload.place,
            ),
            NAME,
        )
