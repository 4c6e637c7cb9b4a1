"""Forked workers get copies of the dataset's Python objects."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure.finding import Finding
from launcher.units import counted, human_size

TL713 = Explanation(
    "TL713",
    "copy-on-write-growth",
    "The dataset holds many Python objects, and each forked worker comes to have its own copy of them.",
    """\
**Why**: fork shares memory until somebody writes. Reading a Python object writes: its reference counter stands in its
first bytes. A worker that goes through a list of a million paths so copies every page of them, and the job grows over
its first epoch by the list's size times the workers, until it is killed for memory: it looks like a leak. Arrays and
tensors have one counter for all their data and stay shared.

**Example**:

```python
class Images(Dataset):
    def __init__(self, root):
        self.paths = [str(path) for path in root.rglob("*.jpg")]  # 10 million of them
```

**Write instead**:

```python
class Images(Dataset):
    def __init__(self, root):
        self.paths = numpy.array([str(path) for path in root.rglob("*.jpg")])  # one array of fixed-width text
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: `bytes` of objects, most of them under `path`, the `total` of all copies, the `limit`, numbers."""
    facts = finding.facts
    size, total, limit = (human_size(int(facts[each])) for each in ("bytes", "total", "limit"))
    workers, ranks = int(facts["num_workers"]), int(facts["ranks"])
    of_ranks = f" of {ranks} ranks" if ranks > 1 else ""
    return Diagnostic(
        TL713.code,
        f"the dataset holds {size} of Python objects, most in {facts['path']}; {counted(workers, 'worker')}{of_ranks}"
        f" will copy up to {total}, of {limit} of memory",
        "keep them in one array, as numpy.array(list) or a tensor, or use fewer workers",
        why="reading an object writes to its reference counter, so a forked worker gets its own copy of the page",
        severity=Severity.ERROR if int(facts["total"]) >= int(facts["limit"]) else Severity.WARNING,
    )
