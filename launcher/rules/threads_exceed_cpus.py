"""OMP_NUM_THREADS, for each training process, is more than the CPU limit allows.

**Why it matters**: each rank starts that many threads. Beyond the limit they are throttled in turn, and those that
wait for each other spin: training is slower than with fewer.

**Example**:

```shell
docker run --rm --cpus 8 --shm-size=4g -e OMP_NUM_THREADS=8 trainer:1 torchrun --nproc_per_node 8 train.py
```

**Use instead**:

```shell
docker run --rm --cpus 8 --shm-size=4g -e OMP_NUM_THREADS=1 trainer:1 torchrun --nproc_per_node 8 train.py
```

**Fix**: type the number of the message; sums of floats may differ in their last digits with other threads.

**References**: docs/sizing.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import Known, stated
from launcher.rules.written.commands import stated_ranks
from launcher.rules.written.model import DEFECTS, KUBERNETES, Finding, WrittenFile, at

CODE = "TL355"
NAME = "threads-exceed-cpus"
SEVERITY = Severity.WARNING
GROUP = DEFECTS


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for each container whose ranks' threads outnumber the CPU limit."""
    for written in file.containers:
        workload = written.workload
        value, milli = workload.env.get("OMP_NUM_THREADS"), stated(workload.cpus)
        if workload.format == KUBERNETES and at(written.own, "resources", "limits", "cpu") is None:
            continue  # a request is no limit
        if not isinstance(value, Known) or not milli or not re.fullmatch(r"[1-9][0-9]{0,3}", value.value):
            continue
        ranks = stated_ranks(written.argvs) or 1
        threads = int(value.value) * ranks
        if threads * 1000 <= milli or int(value.value) == 1:
            continue
        several = f" in each of {ranks} ranks" if ranks > 1 else ""
        yield Finding(
            Diagnostic(
                CODE,
                f"OMP_NUM_THREADS {value.value}{several} is {threads} threads for a limit of {milli / 1000:g} CPUs",
                f"set OMP_NUM_THREADS to {max(1, milli // 1000 // ranks)}",
                why="threads beyond the limit are throttled while others wait for them",
                severity=SEVERITY,
                span=value.span,
                field=workload.place,
            ),
            NAME,
        )
