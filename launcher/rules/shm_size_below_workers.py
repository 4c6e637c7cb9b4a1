"""A stated size of /dev/shm leaves less than 4 MiB for a batch of the stated workers.

**Why it matters**: each worker has prefetched batches in /dev/shm, 2 unless prefetch_factor says otherwise, and the
loop holds 2 more: workers × prefetch_factor + 2 batches at once. What is above that dies of `Bus error` or `No space
left on device`.

**Example**:

```shell
docker run --rm --shm-size=128m trainer:1 python train.py --num-workers 32
```

**Use instead**:

```shell
docker run --rm --shm-size=16g trainer:1 python train.py --num-workers 32
```

**Fix**: none by itself: the batch decides, and only a job file with `sample` computes it.

**References**: docs/sizing.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import SIZE, TMPFS, Known
from launcher.rules.written.commands import stated_prefetch
from launcher.rules.written.evidence import size_text, suggested_shm, workers_of
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile
from launcher.units import MIB, human_size

CODE = "TL335"
NAME = "shm-size-below-workers"
SEVERITY = Severity.WARNING
GROUP = DEFECTS
_HELD = 2
_DEFAULT = 64 * MIB  # shm-size-of-default says that
_LEAST = 4 * MIB  # seven RGB images of 224 × 224 as float32


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for each size above the default in which the stated workers' batches must be tiny."""
    for written in file.containers:
        workload, size = written.workload, written.workload.shm.size
        workers = workers_of(written)
        if not workers or workload.shm.kind not in {SIZE, TMPFS} or not isinstance(size, Known):
            continue
        batches = workers * stated_prefetch(written.argvs) + _HELD
        if size.value <= _DEFAULT or size.value >= batches * _LEAST:
            continue
        yield Finding(
            Diagnostic(
                CODE,
                f"/dev/shm of {size.text} holds {batches} batches of {workers} workers, so none may exceed "
                f"{human_size(size.value // batches)}",
                f"set the size to {size_text(suggested_shm(workload, workers), written)}, or state fewer workers",
                why="each worker prefetches batches into /dev/shm, and the loop holds two more",
                severity=SEVERITY,
                span=size.span,
                field=workload.place,
            ),
            NAME,
        )
