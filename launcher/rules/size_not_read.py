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
from launcher.rules.written.model import COMPOSE, DEFECTS, ECS, KUBERNETES, Finding, Written, WrittenFile

CODE = "TL304"
NAME = "size-not-read"
SEVERITY = Severity.ERROR
GROUP = DEFECTS
_SIZE = re.compile(r"[\"']?([0-9]+(?:[.,][0-9]+)?)[ _]*([KMGT])i?(?:b|bytes?)?[\"']?", re.ASCII | re.IGNORECASE)
_BINARY = re.compile(r"([\"']?)([0-9]+)([KMGT])i\1", re.ASCII | re.IGNORECASE)


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a finding for each size of docker or Compose that is written as a Kubernetes quantity."""
    for written in file.containers:
        shm = written.workload.shm
        for what, value in (("/dev/shm", shm.size), ("/dev/shm", shm.declared), ("memory", written.workload.memory)):
            yield from _found(written, what, value)


def _found(written: Written, what: str, value: Value[int]) -> Iterator[Finding]:
    if not isinstance(value, Unknown) or "unclear" in written.workload.rest or re.search(r"[$`{!]", value.text):
        return
    match = _BINARY.fullmatch(value.text)
    if not match or written.workload.format in {KUBERNETES, ECS}:
        yield from _otherwise(written, what, value)
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


def _otherwise(written: Written, what: str, value: Unknown) -> Iterator[Finding]:
    """Yield a finding for any other text that is no size to its reader, with the nearest that is one."""
    match = _SIZE.fullmatch(value.text)
    form = {KUBERNETES: "Gi", COMPOSE: "gb", ECS: ""}.get(written.workload.format, "g")
    if form == "":
        fix = "write a whole number of MiB, as 2048"
    elif match:
        fix = f"write {match[1].replace(',', '.')}{form.replace('g', match[2].lower()).replace('G', match[2].upper())}"
    else:
        fix = f"write a size like 8{form}"
    yield Finding(
        Diagnostic(
            CODE,
            f"the size of {what} is {value.text}, which is not a size here",
            fix,
            why="the reader of this text knows other units, and stops with an error",
            severity=SEVERITY,
            span=value.span,
            field=written.workload.place,
        ),
        NAME,
    )
