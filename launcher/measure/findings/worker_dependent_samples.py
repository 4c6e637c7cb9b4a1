"""Workers read other samples than one process does."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure.finding import Finding

TL712 = Explanation(
    "TL712",
    "worker-dependent-samples",
    "A sample that one process always reads alike is another in workers, or fails there.",
    """\
**Why**: workers that are forked share what was open before: one position in a file for all of them, one cache of a
library. One seeks, another reads, and gets bytes of another sample. Mostly nothing is raised, and training goes on
with wrong samples. Measured: samples that one process reads twice alike were read again and again by four workers at
once. Wrong is what a worker read right at another time; random augmentation is none of that.

**Example**:

```python
class Records(Dataset):
    def __init__(self, path):
        self.file = open(path, "rb")

    def __getitem__(self, index):
        self.file.seek(index * SIZE)
        return decode(self.file.read(SIZE))
```

**Write instead**:

```python
class Records(Dataset):
    def __init__(self, path):
        self.path, self.file = path, None

    def __getitem__(self, index):
        if self.file is None:
            self.file = open(self.path, "rb")
        self.file.seek(index * SIZE)
        return decode(self.file.read(SIZE))
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: `wrong` of `read` samples, the `index` of one, what was `raised`, shared `files`, the `workers` tried."""
    wrong, read, workers = (int(finding.facts[each]) for each in ("wrong", "read", "workers"))
    files, raised = ", ".join(finding.facts["files"]), "; ".join(finding.facts["raised"])
    index = finding.facts["index"]
    if wrong:
        message = f"{wrong} of {read} samples that {workers} workers read were wrong, index {index} among them"
    elif raised:
        message = f"samples that one process reads fail in a worker: {raised}"
    else:
        message = f"{workers} workers share one position in {files}; {read} samples were right this time"
    return Diagnostic(
        TL712.code,
        message,
        f"open {files or 'files and databases'} in the worker, when it reads its first sample, and not in __init__",
        why="forked workers share one position in each file that was open before: one seeks, another reads there",
        severity=Severity.ERROR if int(finding.facts["num_workers"]) and (wrong or raised) else Severity.WARNING,
    )
