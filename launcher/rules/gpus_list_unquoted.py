"""`--gpus` gets a list that docker reads as something else: `device=0,1` without its quotes, or indexes as a count.

**Why it matters**: the value is a CSV record. `device=0,1` is a device and a count (`cannot set both Count and
DeviceIDs on device request`, exit 125); of `0,1,2,3` only the last number holds, as a count: three GPUs.

**Example**:

```shell
docker run --rm --gpus device=0,1 --shm-size=8g trainer:1 python train.py
```

**Use instead**:

```shell
docker run --rm --gpus '"device=0,1"' --shm-size=8g trainer:1 python train.py
```

**Fix**: `--fix` quotes `device=…`; safe. Indexes without `device=` are left, since a count may be meant.

**References**: docker run --gpus; Docker's documentation of device requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Edit, Severity
from launcher.formats.workload import GpuRequest, Known, Unknown, Value
from launcher.rules.written.model import DEFECTS, DEVCONTAINER, GITHUB, Finding, WrittenFile

CODE = "TL319"
NAME = "gpus-list-unquoted"
SEVERITY = Severity.ERROR
GROUP = DEFECTS
_DEVICES = re.compile(r"([\"']?)(device=[\w-]+(?:,[\w-]+)+)\1")
_INDEXES = re.compile(r"([\"']?)([0-9]+(?:,[0-9]+)+)\1")


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each --gpus whose list is not one CSV field."""
    for written in file.containers:
        gpus = written.workload.gpus
        if written.workload.format == "docker_run" and isinstance(gpus, (Known, Unknown)):
            found = _finding(file, gpus, written.workload.place)
            if found is not None:
                yield found


def _finding(file: WrittenFile, gpus: Value[GpuRequest], place: str) -> Finding | None:
    text = gpus.text if gpus is not None else ""
    devices, indexes = _DEVICES.fullmatch(text), _INDEXES.fullmatch(text)
    match = devices or indexes
    if match is None or gpus is None:
        return None
    ids = match[2].removeprefix("device=")
    right = f"'\"device={ids}\"'"
    plain = file.kind not in {DEVCONTAINER, GITHUB}  # there the value stands inside another string
    message = f"--gpus {match[2]} is read as a device and a count, which docker refuses"
    if indexes:
        message = (
            f"--gpus {match[2]} is read as a count of {ids.rpartition(',')[2]}: of bare numbers the last one holds"
        )
    return Finding(
        Diagnostic(
            CODE,
            message,
            f"write --gpus {right}",
            why="the value is one CSV record; a list of devices is one field only inside double quotes",
            severity=SEVERITY,
            span=gpus.span,
            field=place,
        ),
        NAME,
        (Edit(gpus.span, right),) if plain else (),
        safe=plain and devices is not None,
    )
