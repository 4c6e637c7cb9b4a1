"""A Compose service takes its GPU by a CDI name in `devices:`, which not every engine knows.

**Why it matters**: Docker knows CDI names from 28.2 on, podman-compose does; docker-compose on Podman 4 drops them
without a word, and the job trains on the CPU.

**Example**:

```compose
services:
  train: {image: "trainer:1.4", command: python train.py, shm_size: 8gb, devices: [nvidia.com/gpu=all]}
```

**Use instead**:

```compose
services:
  train:
    image: trainer:1.4
    command: python train.py
    shm_size: 8gb
    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: all, capabilities: [gpu]}]}}}
```

**Fix**: none by itself: on Podman the CDI name may be the only form that works.

**References**: Docker, Container Device Interface; podman run --device.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.model import COMPOSE, DEFECTS, Finding, WrittenFile, at
from launcher.yamltree.documents import Scalar, Sequence

CODE = "TL325"
NAME = "gpu-by-cdi-name"
SEVERITY = Severity.INFO
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an info for each service with a CDI name among its devices."""
    for written in file.containers:
        devices = at(written.own, "devices") if written.workload.format == COMPOSE else None
        for node in devices.items if isinstance(devices, Sequence) else ():
            if isinstance(node, Scalar) and node.text.startswith("nvidia.com/gpu="):
                yield Finding(
                    Diagnostic(
                        CODE,
                        f"whether {node.text} gives a GPU depends on the engine",
                        "look for /dev/nvidia0 inside, or reserve the GPU under deploy.resources.reservations.devices",
                        why="Docker 28.2 and podman-compose know CDI names; docker-compose on Podman 4 drops them",
                        severity=SEVERITY,
                        span=node.span,
                        field=written.workload.place,
                    ),
                    NAME,
                )
                break
