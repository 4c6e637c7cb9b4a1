"""A loader that evaluates drops samples."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure.finding import Finding

TL717 = Explanation(
    "TL717",
    "validation-drop-last",
    "A loader that evaluates has drop_last, so some samples are never evaluated.",
    """\
**Why**: `drop_last=True` keeps batches equal for training. In an evaluation it leaves the last samples out: always
the same ones where nothing is shuffled, so the metric is not that of the whole set, and changes with batch_size.

**Example**:

```python
val = DataLoader(held_out, batch_size=64, drop_last=True)
```

**Write instead**:

```python
val = DataLoader(held_out, batch_size=64)
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: `samples` and how many are `dropped`, `batch_size`, whether the loader `ran` before the probe ended."""
    dropped, samples, size = (int(finding.facts[each]) for each in ("dropped", "samples", "batch_size"))
    what = (
        "the loader that evaluates" if finding.facts["ran"] else "this loader, which isn't shuffled and didn't train,"
    )
    return Diagnostic(
        TL717.code,
        f"{what} drops {dropped} of {samples} samples (batch_size {size}, drop_last=True)",
        "drop_last=False where it evaluates",
        why="the last samples are never evaluated, and which they are changes with batch_size",
        severity=Severity.WARNING,
    )
