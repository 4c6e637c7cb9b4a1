"""A size of /dev/shm is stated that the engine leaves out: 0, or an unquoted decimal in Compose.

**Why it matters**: docker takes 0 for its default of 64 MiB; Compose leaves out 0 and every number with a point or an
exponent, as `1.5` or `2e9`, and says nothing.

**Example**:

```compose
services:
  train: {image: "trainer:1", command: python train.py --num-workers 4, shm_size: 2e9}
```

**Use instead**:

```compose
services:
  train: {image: "trainer:1", command: python train.py --num-workers 4, shm_size: 2gb}
```

**Fix**: none by itself: an unquoted number may mean bytes or GiB. An error where workers are stated.

**References**: docs/compose.md; docker run --shm-size.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import ABSENT, Known
from launcher.rules.written.evidence import size_text, suggested_shm, workers_of
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile

CODE = "TL363"
NAME = "size-not-in-effect"
SEVERITY = Severity.WARNING
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a finding for each stated size that leaves /dev/shm at the default."""
    for written in file.containers:
        workload, shm = written.workload, written.workload.shm
        if shm.kind != ABSENT or not isinstance(shm.declared, Known) or shm.span is None:
            continue
        workers = workers_of(written)
        zero = shm.declared.value == 0
        yield Finding(
            Diagnostic(
                CODE,
                f"the size {shm.declared.text} is left out, and /dev/shm has 64 MiB",
                f"write {size_text(suggested_shm(workload, workers), written)}",
                why="0 is the default of 64 MiB" if zero else "Compose leaves out a size that is an unquoted decimal",
                severity=Severity.ERROR if workers else SEVERITY,
                span=shm.declared.span,
                field=workload.place,
            ),
            NAME,
        )
