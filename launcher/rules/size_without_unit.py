"""A size without a unit, which is a number of bytes: `--shm-size=16` is sixteen bytes.

**Why it matters**: the engine takes it without a word and makes a /dev/shm of one page; the first semaphore or tensor
fails with `No space left on device`.

**Example**:

```shell
docker run --rm --shm-size=16 trainer:1 python train.py
```

**Use instead**:

```shell
docker run --rm --shm-size=16g trainer:1 python train.py
```

**Fix**: none by itself, since only you know the unit; the message has the value to type.

**References**: docker run reference, --shm-size; Compose specification, byte values.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import Known, Value
from launcher.rules.written.model import COMPOSE, DEFECTS, KUBERNETES, Finding, Written, WrittenFile
from launcher.units import MIB

CODE = "TL302"
NAME = "size-without-unit"
SEVERITY = Severity.ERROR
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a finding for each size of /dev/shm or memory that is a bare number below one MiB."""
    for written in file.containers:
        shm = written.workload.shm
        for what, value in (("/dev/shm", shm.size or shm.declared), ("memory", written.workload.memory)):
            if isinstance(value, Known) and 0 < value.value < MIB and _is_bare(value):
                yield _finding(written, what, value)


def _is_bare(value: Value[int]) -> bool:
    return isinstance(value, Known) and value.text.strip("\"'").rstrip("bB").isdecimal()


def _finding(written: Written, what: str, value: Known[int]) -> Finding:
    number = value.text.strip("\"'").rstrip("bB")
    unit = {KUBERNETES: "Gi", COMPOSE: "gb"}.get(written.workload.format, "g")
    if value.value >= 1024:
        unit = {KUBERNETES: "Mi", COMPOSE: "mb"}.get(written.workload.format, "m")
    return Finding(
        Diagnostic(
            CODE,
            f"the size of {what} is {value.text}: {value.value} bytes, less than one MiB",
            f"write {number}{unit}",
            why="a number without a unit counts bytes",
            severity=SEVERITY,
            span=value.span,
            field=written.workload.place,
        ),
        NAME,
    )
