"""A GPU job copies its batches from pageable memory."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure.finding import Finding
from launcher.units import human_size

TL719 = Explanation(
    "TL719",
    "no-pin-memory",
    "A job that trains on a GPU copies batches there from memory that is not pinned.",
    """\
**Why**: a GPU reads only pinned memory by itself. Everything else the driver copies first, on a CPU, and the script
waits: `non_blocking=True` then changes nothing. Measured: a copy of one batch's bytes to the GPU, from both kinds of
memory.

**Example**:

```python
loader = DataLoader(dataset, batch_size=128, num_workers=8)
```

**Write instead**:

```python
loader = DataLoader(dataset, batch_size=128, num_workers=8, pin_memory=True)
for images, labels in loader:
    images, labels = images.to("cuda", non_blocking=True), labels.to("cuda", non_blocking=True)
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: `bytes` that were copied, `seconds` from pageable and `pinned_seconds` from pinned memory."""
    pageable, pinned = float(finding.facts["seconds"]) * 1000, float(finding.facts["pinned_seconds"]) * 1000
    size = human_size(int(finding.facts["bytes"]))
    return Diagnostic(
        TL719.code,
        f"a batch of {size} takes {pageable:.3g} ms to the GPU, and {pinned:.3g} ms from pinned memory",
        'pin_memory=True in DataLoader(...), and batch.to("cuda", non_blocking=True)',
        why="the driver copies pageable memory on a CPU first, and the script waits for that",
        severity=Severity.WARNING,
    )
