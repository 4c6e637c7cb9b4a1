"""A dataset brings an open handle to its workers."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure.finding import Finding
from launcher.rules.written.scripts import CUDA_FIX, CUDA_WHY, HANDLE_FIX, HANDLE_WHY
from launcher.units import counted

_NOUNS = {
    "file": "file",
    "lock": "lock",
    "CUDA": "piece of a GPU's memory",
    "socket": "socket",
    "image": "image of PIL",
}
_LIBRARY = (
    "a library keeps state of what it has open in its process, and forked copies of that state contradict each other"
)
_WHY = {
    "file": HANDLE_WHY,
    "image": "PIL reads the file when its pixels are asked for, and forked workers share the position in it",
    "CUDA": CUDA_WHY,
    "lock": "each worker has its own copy, which keeps no two of them apart; one held at the fork stays so for ever",
    "socket": "all workers write to one connection and read each other's answers",
}

TL702 = Explanation(
    "TL702",
    "handle-in-init",
    "A dataset opens a file, a database, a connection or a lock before its workers start, and they use it.",
    """\
**Why**: a forked worker gets a copy of what the process keeps of an open handle, and all copies lead to one position,
one connection or one state of a library: workers read each other's samples without an error, or die of a `KeyError`, a
bad header, a protocol that broke. A copied lock keeps no two workers apart, and one that was held at the fork is never
released. Memory of a GPU can't be used in a forked process at all. spawn and forkserver can't pickle a handle. For
plain files in scripts, `lint` says the same of their text (TL340).

**Example**:

```python
class Cells(Dataset):
    def __init__(self, path):
        self.file = h5py.File(path)

    def __getitem__(self, index):
        return self.file["cells"][index]
```

**Write instead**:

```python
class Cells(Dataset):
    def __init__(self, path):
        self.path, self.file = path, None

    def __getitem__(self, index):
        if self.file is None:
            self.file = h5py.File(self.path)
        return self.file["cells"][index]
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: `path`, `kind`, `file` behind it, whether it was `locked` at the fork, num_workers and start_method."""
    facts = finding.facts
    kind, workers, method = str(facts["kind"]), int(facts["num_workers"]), str(facts["start_method"])
    file = f" of {facts['file']}" if facts["file"] else ""
    if not workers:
        shared = "and workers would share it"
    elif method == "fork":
        shared = f"and {counted(workers, 'forked worker')} share it"
    else:
        shared = f"and {method} can't pickle it for {counted(workers, 'worker')}"
    harmless = not workers or (kind == "lock" and not facts["locked"] and method == "fork")
    return Diagnostic(
        TL702.code,
        f"{facts['path']} is an open {_NOUNS.get(kind, kind + ' handle')}{file}, {shared}",
        CUDA_FIX if kind == "CUDA" else HANDLE_FIX,
        why=_WHY.get(kind, _LIBRARY),
        severity=Severity.WARNING if harmless else Severity.ERROR,
    )
