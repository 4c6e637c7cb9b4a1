"""num_workers is the number of the machine's CPUs, not of those that the container may use.

**Why it matters**: `os.cpu_count()` reads the host. In a container with 4 of 64 CPUs it starts 64 workers, each of
which takes memory and batches of /dev/shm; with several ranks each starts as many.

**Example**:

```training-script
loader = DataLoader(data, num_workers=os.cpu_count())
```

**Use instead**:

```training-script
loader = DataLoader(data, num_workers=int(os.environ["TRAINLAUNCH_NUM_WORKERS"]))
```

**Fix**: none by itself; `len(os.sched_getaffinity(0))` sees a cpuset, and no quota.

**References**: Python, os.cpu_count; docs/sizing.md.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.rules.written.model import DEFECTS, Finding, WrittenFile
from launcher.rules.written.scripts import argument, loaders, name_of, span_of

CODE = "TL345"
NAME = "workers-of-host"
SEVERITY = Severity.WARNING
GROUP = DEFECTS
_COUNTS = frozenset({"os.cpu_count", "cpu_count", "multiprocessing.cpu_count", "mp.cpu_count", "psutil.cpu_count"})


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for each loader whose workers are the machine's CPUs."""
    for call in loaders(file.tree):
        value = argument(call, "num_workers")
        if isinstance(value, ast.Call) and name_of(value.func) in _COUNTS:
            yield Finding(
                Diagnostic(
                    CODE,
                    f"num_workers is {name_of(value.func)}(), the host's CPUs whatever the container may use",
                    'write the number of its CPUs, or int(os.environ["TRAINLAUNCH_NUM_WORKERS"])',
                    why="cpu_count() knows no quota of a container; each worker costs memory and /dev/shm",
                    severity=SEVERITY,
                    span=span_of(file, value),
                ),
                NAME,
            )
