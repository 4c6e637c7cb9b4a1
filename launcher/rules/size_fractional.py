"""A Kubernetes size that is not a whole number of bytes: `1.1Gi`.

**Why it matters**: the API server stores it as `1181116006400m` and warns of a `fractional byte value`; other readers
of the object refuse it, and a diff with the file never ends.

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
  volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: 1.1Gi}}]
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
  volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: 1127Mi}}]
```

**Fix**: `--fix` rounds up to whole MiB; safe, less than one MiB more.

**References**: Kubernetes, Resource Management: quantities of memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from launcher.diagnostics import Diagnostic, Edit, Severity
from launcher.formats.workload import Known, Value
from launcher.rules.written.model import DEFECTS, KUBERNETES, Finding, Written, WrittenFile
from launcher.units import MIB

CODE = "TL306"
NAME = "size-fractional"
SEVERITY = Severity.WARNING
GROUP = DEFECTS
_FRACTION = re.compile(r"([\"']?)([0-9]{1,15}\.[0-9]{1,15})([KMGT])i\1", re.ASCII)


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for each size of a pod that is not a whole number of bytes."""
    for written in file.containers:
        if written.workload.format != KUBERNETES:
            continue
        for what, value in (("sizeLimit", written.workload.shm.size), ("memory", written.workload.memory)):
            yield from _found(written, what, value)


def _found(written: Written, what: str, value: Value[int]) -> Iterator[Finding]:
    match = _FRACTION.fullmatch(value.text) if isinstance(value, Known) else None
    if not isinstance(value, Known) or not match:
        return
    exact = Fraction(match[2]) * 2 ** (10 * ("KMGT".index(match[3]) + 1))
    if exact.denominator == 1:
        return
    rounded = f"{-(-exact // MIB)}Mi"
    yield Finding(
        Diagnostic(
            CODE,
            f"{what} {match[2]}{match[3]}i is not a whole number of bytes",
            f"write {rounded}",
            why="the API server stores it in thousandths of a byte and warns; other readers refuse it",
            severity=SEVERITY,
            span=value.span,
            field=written.workload.place,
        ),
        NAME,
        (Edit(value.span, f"{match[1]}{rounded}{match[1]}"),),
        safe=True,
    )
