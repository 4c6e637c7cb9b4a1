"""A Kubernetes size of /dev/shm in decimal units: `20G` is 18.6 GiB.

**Why it matters**: it works, and Docker reads the same letters as 20 GiB. Whoever carries the number over gets another
size: `df` shows 19G where 20G is written.

**Example**:

```kubernetes
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - name: train
    image: trainer:1
    resources: {limits: {memory: 64Gi}}
    volumeMounts: [{name: dshm, mountPath: /dev/shm}]
  volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: 20G}}]
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
    resources: {limits: {memory: 64Gi}}
    volumeMounts: [{name: dshm, mountPath: /dev/shm}]
  volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: 20Gi}}]
```

**Fix**: none by itself: 20Gi is more than 20G, and a memory limit may be right above it.

**References**: Kubernetes, Resource Management: a quantity's suffixes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import Known
from launcher.rules.written.model import DEFECTS, KUBERNETES, Finding, WrittenFile
from launcher.units import GIB, MIB

CODE = "TL305"
NAME = "size-decimal"
SEVERITY = Severity.INFO
GROUP = DEFECTS
_DECIMAL = re.compile(r"[\"']?([0-9.]+)([MGT])[\"']?", re.ASCII)


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an info for each size of /dev/shm that Kubernetes reads in powers of ten."""
    for written in file.containers:
        size = written.workload.shm.size
        match = _DECIMAL.fullmatch(size.text) if isinstance(size, Known) else None
        if written.workload.format != KUBERNETES or not isinstance(size, Known) or not match:
            continue
        number, letter = match[1], match[2]
        yield Finding(
            Diagnostic(
                CODE,
                f"sizeLimit {number}{letter} is {size.value / GIB:.1f} GiB",
                f"write {number}{letter}i for powers of two; in Docker this size is {size.value // MIB}m",
                why=f"{letter} counts in powers of ten in Kubernetes and in powers of two in Docker",
                severity=SEVERITY,
                span=size.span,
                field=written.workload.place,
            ),
            NAME,
        )
