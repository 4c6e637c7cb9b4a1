"""Each process fills a cache of samples for itself."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure.finding import Finding
from launcher.units import counted, human_size

TL715 = Explanation(
    "TL715",
    "cache-per-rank",
    "The dataset keeps the samples that it has read, each rank and each worker for itself.",
    """\
**Why**: with workers `__getitem__` runs in them, so each fills a cache of its own, and the script's process none.
Workers that aren't persistent end with the epoch, and their caches with them: every epoch reads everything again.
Persistent workers keep theirs, and since any of them may get any sample, each comes to hold the whole dataset: its size
times the workers times the ranks.

**Example**:

```python
class Images(Dataset):
    def __init__(self, paths):
        self.paths, self.cache = paths, {}

    def __getitem__(self, index):
        if index not in self.cache:
            self.cache[index] = decode(self.paths[index])
        return self.cache[index]
```

**Write instead**:

```python
class Images(Dataset):
    def __init__(self, paths):  # decoded once, into one file that all processes map
        self.images = numpy.load("decoded.npy", mmap_mode="r")

    def __getitem__(self, index):
        return torch.from_numpy(self.images[index].copy())
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: `path`, `bytes_per_sample`, `samples`, `total` in all processes, `limit`, and the loader's numbers."""
    facts = finding.facts
    each, total, limit = (human_size(int(facts[name])) for name in ("bytes_per_sample", "total", "limit"))
    workers, ranks, samples = (int(facts[name]) for name in ("num_workers", "ranks", "samples"))
    processes = counted(workers, "worker") if workers else "the process"
    of_ranks = f" of {ranks} ranks" if ranks > 1 else ""
    lost = workers > 0 and not facts["persistent_workers"]
    comes_to = "and loses it with each epoch" if lost else f"and comes to hold {total}, of {limit} of memory"
    holder = "each of " if workers > 1 or ranks > 1 else ""
    return Diagnostic(
        TL715.code,
        f"{facts['path']} keeps {each} of each of {samples} samples, and {holder}{processes}{of_ranks} fills its own,"
        f" {comes_to}",
        'write what is costly to a file once, and map it: numpy.load(path, mmap_mode="r")'
        + ("; persistent_workers=True keeps the caches" if lost else ""),
        why="__getitem__ runs in the workers, and no process sees what another has cached",
        severity=Severity.ERROR if not lost and int(facts["total"]) >= int(facts["limit"]) else Severity.WARNING,
    )
