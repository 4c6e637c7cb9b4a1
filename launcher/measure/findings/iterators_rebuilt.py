"""Workers are started for a few batches at a time."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure.finding import Finding

TL718 = Explanation(
    "TL718",
    "iterators-rebuilt",
    "A script starts the workers of a loader again for every few batches.",
    """\
**Why**: `iter(loader)` starts all workers and fills their queues. A script that asks for a new iterator each step, or
builds a loader each step, pays that each time, and throws away what the workers had prepared. Measured: how many
iterators the script built for how many batches, and what one start takes.

**Example**:

```python
for step in range(steps):
    train(next(iter(loader)))
```

**Write instead**:

```python
batches = iter(loader)
for step in range(steps):
    try:
        batch = next(batches)
    except StopIteration:
        batches = iter(loader)
        batch = next(batches)
    train(batch)
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: `iterators` for `batches`, `seconds` of one start, `num_workers`, `length` of an epoch or None."""
    iterators, batches, workers = (int(finding.facts[each]) for each in ("iterators", "batches", "num_workers"))
    each = float(finding.facts["seconds"])
    return Diagnostic(
        TL718.code,
        f"the script starts {workers} workers {iterators} times for {batches} batches: {each:.2g} s each, "
        f"{each * iterators:.2g} s together",
        "keep one iterator until it ends (batches = iter(loader), then next(batches)), or set num_workers=0",
        why="iter(loader) starts all workers, and what they prepared is thrown away with it",
        severity=Severity.WARNING,
    )
