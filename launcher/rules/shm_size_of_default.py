"""A stated size of /dev/shm is no more than the 64 MiB that a runtime gives anyway, and workers are stated.

**Why it matters**: a few batches fill it, and workers die of `Bus error` as without any size.

**Example**:

```shell
docker run --rm --shm-size=64m trainer:1 python train.py --num-workers 4
```

**Use instead**:

```shell
docker run --rm --shm-size=2g trainer:1 python train.py --num-workers 4
```

**Fix**: none by itself: what a batch takes is not in the text; docs/sizing.md has the law.

**References**: docs/sizing.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import SIZE, TMPFS, Known
from launcher.rules.written.evidence import size_text, suggested_shm, workers_of
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile
from launcher.units import MIB, counted

CODE = "TL332"
NAME = "shm-size-of-default"
SEVERITY = Severity.WARNING
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for each stated size from 1 to 64 MiB beside stated workers."""
    for written in file.containers:
        workload, size = written.workload, written.workload.shm.size
        workers = workers_of(written)
        if workload.shm.kind not in {SIZE, TMPFS} or not isinstance(size, Known) or not workers:
            continue
        if not MIB <= size.value <= 64 * MIB:
            continue
        stated, more = counted(workers, "DataLoader worker"), size_text(suggested_shm(workload, workers), written)
        yield Finding(
            Diagnostic(
                CODE,
                f"/dev/shm has {size.text} for {stated}: no more than the default of 64 MiB",
                f"write {more}, or the need that docs/sizing.md computes",
                why="need is about workers × prefetch_factor × the bytes of one batch",
                severity=SEVERITY,
                span=size.span,
                field=workload.place,
            ),
            NAME,
        )
