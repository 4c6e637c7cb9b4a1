"""A size in a unit that this reader does not know: docker and Compose take `8g` and refuse `8Gi`.

**Why it matters**: nothing starts: `invalid argument "8Gi" for "--shm-size" flag: invalid suffix: 'gi'`, exit 125.

**Example**:

```shell
docker run --rm --shm-size=8Gi trainer:1 python train.py
```

**Use instead**:

```shell
docker run --rm --shm-size=8g trainer:1 python train.py
```

**Fix**: `--fix` writes the same size in the reader's own unit; safe.

**References**: docs/docker.md; docker/go-units, which reads sizes for the docker command line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Edit, Severity
from launcher.formats.workload import Unknown, Value
from launcher.rules.written.model import COMPOSE, DEFECTS, KUBERNETES, Finding, Written, WrittenFile

CODE = "TL304"
NAME = "size-not-read"
SEVERITY = Severity.ERROR
GROUP = DEFECTS
_BINARY = re.compile(r"([\"']?)([0-9]+)([KMGT])i\1", re.ASCII | re.IGNORECASE)


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a finding for each size of docker or Compose that is written as a Kubernetes quantity."""
    for written in file.containers:
        if written.workload.format == KUBERNETES:
            continue
        shm = written.workload.shm
        for what, value in (("/dev/shm", shm.size), ("/dev/shm", shm.declared), ("memory", written.workload.memory)):
            yield from _found(written, what, value)


def _found(written: Written, what: str, value: Value[int]) -> Iterator[Finding]:
    match = _BINARY.fullmatch(value.text) if isinstance(value, Unknown) else None
    if not isinstance(value, Unknown) or not match:
        return
    suffix = match[3].lower() + ("b" if written.workload.format == COMPOSE else "")
    yield Finding(
        Diagnostic(
            CODE,
            f"the size of {what} is {value.text}, which is not a size here",
            f"write {match[2]}{suffix}",
            why="Ki, Mi and Gi are Kubernetes' suffixes; docker and Compose read k, m and g, in the same powers of two",
            severity=SEVERITY,
            span=value.span,
            field=written.workload.place,
        ),
        NAME,
        (Edit(value.span, f"{match[1]}{match[2]}{suffix}{match[1]}"),),
        safe=True,
    )
