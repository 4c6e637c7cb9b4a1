"""A variable of visible devices names GPUs that the container does not have.

**Why it matters**: inside, GPUs are counted from 0 whichever of the host's they are. `CUDA_VISIBLE_DEVICES=2` in a
container with one GPU leaves none: `No CUDA GPUs are available`. `NVIDIA_VISIBLE_DEVICES=all` beside a device
plugin's limit gives all of the node's.

**Example**:

```shell
docker run --rm --gpus '"device=2"' --shm-size=8g -e CUDA_VISIBLE_DEVICES=2 trainer:1 python train.py
```

**Use instead**:

```shell
docker run --rm --gpus '"device=2"' --shm-size=8g trainer:1 python train.py
```

**Fix**: none by itself: which of the two is meant can't be told.

**References**: CUDA programming guide, CUDA_VISIBLE_DEVICES; NVIDIA Container Toolkit, environment variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import Known, Workload
from launcher.rules.written.evidence import gpu_count
from launcher.rules.written.model import DEFECTS, KUBERNETES, Finding, WrittenFile
from launcher.units import counted

CODE = "TL351"
NAME = "visible-devices-contradict"
SEVERITY = Severity.WARNING
GROUP = DEFECTS
_INSIDE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for each variable that hides GPUs which are asked for, or shows others."""
    for written in file.containers:
        for name, value, message, why in _contradictions(written.workload):
            yield Finding(
                Diagnostic(
                    CODE,
                    message,
                    f"delete {name}",
                    why=why,
                    severity=SEVERITY,
                    span=value.span,
                    field=written.workload.place,
                ),
                NAME,
            )


def _contradictions(workload: Workload) -> Iterator[tuple[str, Known[str], str, str]]:
    count = gpu_count(workload)
    for name in _INSIDE:
        value = workload.env.get(name)
        if not isinstance(value, Known) or not count or not re.fullmatch(r"[0-9]+(?:,[0-9]+)*", value.value):
            continue
        highest = max(map(int, value.value.split(",")))
        if highest >= count:
            message = f"{name} names GPU {highest}, and the container has {counted(count, 'GPU')}, counted from 0"
            yield name, value, message, "inside, GPUs are counted from 0, whichever of the host's they are"
    runtime = workload.env.get("NVIDIA_VISIBLE_DEVICES")
    if not isinstance(runtime, Known) or count == 0:
        return
    if runtime.value in {"none", "void"}:
        message = f"NVIDIA_VISIBLE_DEVICES is {runtime.value}, and GPUs are asked for"
        yield "NVIDIA_VISIBLE_DEVICES", runtime, message, "the runtime then gives the container no GPU"
    elif workload.format == KUBERNETES and runtime.value == "all" and count:
        message = f"NVIDIA_VISIBLE_DEVICES is all, and {counted(count, 'GPU')} asked for"
        yield "NVIDIA_VISIBLE_DEVICES", runtime, message, "the device plugin sets it; all may be every GPU of the node"
