"""A workflow's container.options size /dev/shm on a runner that may be a Kubernetes scale set.

**Why it matters**: with ARC in Kubernetes mode the job's container is a pod, and most docker options have no effect.
The file alone can't tell; NCCL then says `failed to extend /dev/shm/nccl-… No space left on device`.

**Example**:

```workflow
on: push
jobs:
  gpu:
    runs-on: gpu-scale-set
    container: {image: "trainer:1", options: --shm-size=16g --gpus all}
    steps: [{run: torchrun test.py}]
```

**Use instead**:

```workflow
on: push
jobs:
  gpu:
    runs-on: [self-hosted, gpu]
    container: {image: "trainer:1", options: --shm-size=16g --gpus all}
    steps: [{run: torchrun test.py}]
```

**Fix**: none by itself: the hook's pod template needs a Memory emptyDir at /dev/shm.

**References**: actions/runner-container-hooks; Actions Runner Controller, container mode kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import SIZE
from launcher.rules.written.model import DEFECTS, GITHUB, Finding, WrittenFile, at
from launcher.yamltree.documents import Scalar

CODE = "TL321"
NAME = "options-left-to-runner"
SEVERITY = Severity.INFO
GROUP = DEFECTS
_HOSTED = re.compile(r"(?:ubuntu|windows|macos)-|self-hosted$|.*\$\{\{")


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an info for each sized container whose runner's name is neither GitHub's own nor self-hosted."""
    for written in file.containers if file.kind == GITHUB else ():
        runner = at(written.pod, "runs-on")
        size = written.workload.shm
        if written.pod is None or not isinstance(runner, Scalar) or _HOSTED.match(runner.text):
            continue
        if size.kind != SIZE or size.span is None:
            continue
        yield Finding(
            Diagnostic(
                CODE,
                f"if {runner.text} is a scale set in Kubernetes mode, --shm-size in container.options has no effect",
                "add a Memory emptyDir at /dev/shm to the pod template of its container hooks",
                why="there the job's container is a pod, and docker's options are not read",
                severity=SEVERITY,
                span=size.span,
                field=written.workload.place,
            ),
            NAME,
        )
