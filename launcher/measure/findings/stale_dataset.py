"""Persistent workers don't see what the script changes in its dataset."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure.finding import Finding
from launcher.units import counted

TL725 = Explanation(
    "TL725",
    "stale-dataset",
    "The script changes its dataset between epochs, and persistent workers keep it as it was when they started.",
    """\
**Why**: workers get the dataset when they start: a copy. persistent_workers=True starts them once, so that set_epoch, a
new shuffle or a curriculum that the script sets later never reaches them, and every epoch is like the first. What lies
in shared memory is one for all; and a sampler runs in the script's own process, so its set_epoch works.

**Example**:

```python
class Shuffled(Dataset):
    def set_epoch(self, epoch):
        self.epoch = epoch


loader = DataLoader(Shuffled(), num_workers=4, persistent_workers=True)
```

**Write instead**:

```python
class Shuffled(Dataset):
    def __init__(self):
        self.epoch = torch.zeros(1, dtype=torch.int64).share_memory_()

    def set_epoch(self, epoch):
        self.epoch.fill_(epoch)


loader = DataLoader(Shuffled(), num_workers=4, persistent_workers=True)
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: `path` of the attribute, its `first` value and the one `now`, the `method` that was tried."""
    facts = finding.facts
    path, method, workers = str(facts["path"]), str(facts["method"]), int(facts["num_workers"])
    keep = f"{counted(workers, 'persistent worker')} keep {facts['first']}"
    change = f"{method} changes {path}" if method else f"{path} has become {facts['now']}"
    attribute = path.rpartition(".")[2]
    return Diagnostic(
        TL725.code,
        f"{change} in the script's process alone; {keep}",
        f"keep {attribute} in shared memory, as torch.zeros(1, dtype=torch.int64).share_memory_(), and fill_() it; "
        "or state persistent_workers=False",
        why="a worker gets its copy of the dataset when it starts, and a persistent one starts once",
        severity=Severity.WARNING,
    )
