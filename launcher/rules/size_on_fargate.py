"""A task definition for Fargate states sharedMemorySize.

**Why it matters**: Fargate takes no such parameter, and registering the task definition is refused. Its containers
have 64 MiB.

**Example**:

```ecs
{"family": "train", "requiresCompatibilities": ["FARGATE"], "containerDefinitions": [
  {"name": "train", "image": "trainer:1", "linuxParameters": {"sharedMemorySize": 2048}}]}
```

**Use instead**:

```ecs
{"family": "train", "requiresCompatibilities": ["EC2"], "containerDefinitions": [
  {"name": "train", "image": "trainer:1", "linuxParameters": {"sharedMemorySize": 2048}}]}
```

**Fix**: none by itself: where the task runs is not this text's alone.

**References**: Amazon ECS API reference, LinuxParameters.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.ecs_fields import field, is_fargate
from launcher.rules.written.model import DEFECTS, ECS, Finding, WrittenFile

CODE = "TL349"
NAME = "size-on-fargate"
SEVERITY = Severity.ERROR
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each size of a container of Fargate."""
    for written in file.containers if file.kind == ECS else ():
        size = field(written.own, "linuxParameters", "sharedMemorySize")
        if size is None or not is_fargate(written.pod):
            continue
        yield Finding(
            Diagnostic(
                CODE,
                f"sharedMemorySize {size.raw} is stated for Fargate, which does not take it",
                "run it with the launch type EC2, or delete the size and use no DataLoader workers",
                why="containers of Fargate have 64 MiB of /dev/shm",
                severity=SEVERITY,
                span=size.span,
                field=written.workload.place,
            ),
            NAME,
        )
