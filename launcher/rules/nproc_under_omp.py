"""`nproc` is asked for the CPUs while OMP_NUM_THREADS is set, which it prints instead.

**Why it matters**: coreutils' nproc obeys OMP_NUM_THREADS. Images and launchers set it to 1, so that workers counted by
`$(nproc)` become one, and training waits for data with idle CPUs.

**Example**:

```shell
docker run -e OMP_NUM_THREADS=1 --cpus 10 --shm-size=4g trainer:1 sh -c 'exec python train.py --num-workers $(nproc)'
```

**Use instead**:

```shell
docker run -e OMP_NUM_THREADS=1 --cpus 10 --shm-size=4g trainer:1 python train.py --num-workers 10
```

**Fix**: none by itself.

**References**: coreutils, nproc invocation: OMP_NUM_THREADS and OMP_THREAD_LIMIT.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import stated
from launcher.rules.written.evidence import command_span
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile

CODE = "TL324"
NAME = "nproc-under-omp"
SEVERITY = Severity.WARNING
GROUP = DEFECTS
_NPROC = re.compile(r"(?:^|[\s;&|(`'\"/])nproc(?! +--all)(?=$|[\s;&|)`'\"])")


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for each container that runs nproc and sets OMP_NUM_THREADS."""
    for written in file.containers:
        workload = written.workload
        threads = stated(workload.env.get("OMP_NUM_THREADS"))
        argv = written.argv
        if threads is None or not _NPROC.search(" ".join(argv)):
            continue
        yield Finding(
            Diagnostic(
                CODE,
                f"nproc prints OMP_NUM_THREADS {threads} here, not the number of CPUs",
                "write the number of workers, or nproc --all",
                why="coreutils' nproc obeys OMP_NUM_THREADS by design",
                severity=SEVERITY,
                span=command_span(workload),
                field=workload.place,
            ),
            NAME,
        )
