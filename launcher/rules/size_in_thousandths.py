"""A Kubernetes size with the suffix m, which is a thousandth: `512m` is half a byte.

**Why it matters**: `m` is milli in Kubernetes and mega only in Docker. The API server accepts it, the volume becomes
one page, and a memory limit as small keeps the pod from starting (`FailedCreatePodSandBox`).

**Example**:

```kubernetes
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - name: train
    image: trainer:1
    resources: {limits: {memory: 8Gi}}
    volumeMounts: [{name: dshm, mountPath: /dev/shm}]
  volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: 512m}}]
```

**Use instead**:

```kubernetes
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - name: train
    image: trainer:1
    resources: {limits: {memory: 8Gi}}
    volumeMounts: [{name: dshm, mountPath: /dev/shm}]
  volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: 512Mi}}]
```

**Fix**: `--fix` writes `Mi`; safe, since nothing can work with less than a byte.

**References**: Kubernetes, Resource Management: a quantity's suffixes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Edit, Severity
from launcher.formats.workload import Known, Value
from launcher.rules.written.model import DEFECTS, KUBERNETES, Finding, Written, WrittenFile

CODE = "TL303"
NAME = "size-in-thousandths"
SEVERITY = Severity.ERROR
GROUP = DEFECTS
_MILLI = re.compile(r"([\"']?)([0-9]+)m\1", re.ASCII)


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a finding for each size of a pod in thousandths of a byte; one that a machine wrote is huge, and right."""
    for written in file.containers:
        if written.workload.format != KUBERNETES:
            continue
        shm = written.workload.shm
        for what, value in (("sizeLimit", shm.size or shm.declared), ("memory", written.workload.memory)):
            yield from _found(written, what, value)


def _found(written: Written, what: str, value: Value[int]) -> Iterator[Finding]:
    match = _MILLI.fullmatch(value.text) if isinstance(value, Known) else None
    if not isinstance(value, Known) or not match or len(match[2]) > 6:
        return
    quote, number = match[1], match[2]
    size = int(number) / 1000
    yield Finding(
        Diagnostic(
            CODE,
            f"{what} {number}m is {size:g} bytes",
            f"write {number}Mi",
            why="in Kubernetes m is a thousandth; 512m means 512 MiB only in Docker",
            severity=SEVERITY,
            span=value.span,
            field=written.workload.place,
        ),
        NAME,
        (Edit(value.span, f"{quote}{number}Mi{quote}"),),
        safe=True,
    )
