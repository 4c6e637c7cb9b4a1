"""Starting the workers takes a good part of each epoch."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure.finding import Finding

TL720 = Explanation(
    "TL720",
    "no-persistent-workers",
    "Each epoch starts the workers anew, which takes a good part of it.",
    """\
**Why**: without persistent_workers the workers end with each epoch, and the next starts new ones: they import, copy
the dataset (by pickling under spawn and forkserver), run worker_init_fn and open files again. Measured: one start of
the loader's workers, against its batches of an epoch at the speed of the script's own steps. One epoch gains nothing.

With persistent workers the dataset's copies live on: what the main process changes in it later (`set_epoch`) never
arrives.

**Example**:

```python
loader = DataLoader(dataset, num_workers=8)
```

**Write instead**:

```python
loader = DataLoader(dataset, num_workers=8, persistent_workers=True)
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: `seconds` of a start, `epoch_seconds` of its `batches` without that, `num_workers`."""
    start, epoch = float(finding.facts["seconds"]), float(finding.facts["epoch_seconds"])
    batches, workers = int(finding.facts["batches"]), int(finding.facts["num_workers"])
    return Diagnostic(
        TL720.code,
        f"each epoch starts {workers} workers, which takes {start:.2g} s; its {batches} batches take {epoch:.2g} s",
        "persistent_workers=True in DataLoader(...), if there is more than one epoch",
        why="without it workers end with each epoch, and the next ones import, copy the dataset and open files again",
        severity=Severity.WARNING,
    )
