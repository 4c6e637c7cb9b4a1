"""The script builds another number of loaders than the job file states."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure.finding import Finding
from launcher.units import counted

TL723 = Explanation(
    "TL723",
    "loaders-differ",
    "The script runs another number of DataLoaders than data_loader.loaders names.",
    """\
**Why**: /dev/shm is sized for the loaders that the job file names, so one that is missing there has no room: the script
dies with `Bus error`, or hangs. One too many only makes /dev/shm larger than it has to be. What was measured is not
applied until the numbers agree, since it could not be told which loader is which.

**Example**:

```python
train = DataLoader(dataset, batch_size=32, num_workers=4)
val = DataLoader(held_out, batch_size=64, num_workers=4)  # data_loader.loaders: {train: {}}
```

**Write instead**:

```python
train = DataLoader(dataset, batch_size=32, num_workers=4)
val = DataLoader(held_out, batch_size=64, num_workers=4)  # loaders: {train: {}, val: {batch_size: 64}}
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: `seen` and `stated`, numbers of loaders; `names`, of those stated; `places`, of those seen."""
    seen, stated = int(finding.facts["seen"]), int(finding.facts["stated"])
    names, places = ", ".join(finding.facts["names"]), ", ".join(finding.facts["places"])
    said = f"data_loader.loaders names {stated} ({names})" if stated else "data_loader is none"
    return Diagnostic(
        TL723.code,
        f"the script ran {counted(seen, 'loader')} ({places}), and {said}",
        "name every loader of the script in data_loader.loaders, then probe again",
        why="/dev/shm is sized for the loaders that are named; what was measured can't be assigned to them",
        severity=Severity.WARNING,
    )
