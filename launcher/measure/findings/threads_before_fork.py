"""Threads run while workers are forked."""

from __future__ import annotations

from launcher.diagnose.symptoms.fork_deadlock import FIX
from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure.finding import Finding
from launcher.units import counted

_NAMED = 4

TL703 = Explanation(
    "TL703",
    "threads-before-fork",
    "Threads of the script, or of a library that breaks under fork, run when a loader forks its workers.",
    """\
**Why**: fork copies memory, and of all threads only the one that calls it. A lock that another thread holds at that
moment is copied as held, and the thread that would release it isn't there: a worker that needs it waits for ever.
Whether that happens depends on the moment, so such a job hangs now and then. Threads of OpenMP, BLAS, torch and CUDA
are prepared for a fork and are not meant.

**Example**:

```python
threading.Thread(target=report, daemon=True).start()
loader = DataLoader(dataset, num_workers=4)
```

**Write instead**:

```python
threading.Thread(target=report, daemon=True).start()
loader = DataLoader(dataset, num_workers=4, multiprocessing_context="forkserver")
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: `threads` with `name`, `at` and `package`, the first few of `count`; num_workers."""
    count, workers = int(finding.facts["count"]), int(finding.facts["num_workers"])
    names = [f"{each['name']} ({each['at'] or each['package']})" for each in finding.facts["threads"][:_NAMED]]
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return Diagnostic(
        TL703.code,
        f"{counted(count, 'thread')} run while {counted(workers, 'worker')} are forked: {', '.join(names)}{more}",
        FIX,
        why="a lock that a thread holds at the fork stays held in the worker for ever: the thread isn't copied",
        severity=Severity.WARNING,
    )
