"""A container that trains or has a GPU runs privileged.

**Why it matters**: it has every device and capability of the machine. GPUs, InfiniBand and a large /dev/shm need none
of that: --gpus, --device and --shm-size do.

**Example**:

```shell
docker run --rm --init --privileged --gpus all --shm-size=4g trainer:1 python train.py
```

**Use instead**:

```shell
docker run --rm --init --gpus all --shm-size=4g trainer:1 python train.py
```

**Fix**: none by itself: what else the container does isn't known.

**References**: docker run --privileged; Kubernetes Pod Security Standards.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.evidence import has_gpu, is_privileged, trains
from launcher.rules.written.model import PRACTICE, Finding, WrittenFile

CODE = "TL369"
NAME = "privileged"
SEVERITY = Severity.INFO
GROUP = PRACTICE


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an info for each privileged container that trains or has a GPU."""
    for written in file.containers:
        workload = written.workload
        if not is_privileged(workload) or not (trains(written) or has_gpu(workload)):
            continue
        yield Finding(
            Diagnostic(
                CODE,
                "the container is privileged",
                "delete it, and state the devices and capabilities that are needed",
                why="a privileged container is root on its machine; neither GPUs nor /dev/shm need it",
                severity=SEVERITY,
                span=workload.span,
                field=workload.place,
            ),
            NAME,
        )
