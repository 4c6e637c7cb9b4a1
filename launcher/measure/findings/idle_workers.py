"""Some workers of a stream yield nothing."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure.finding import Finding

TL711 = Explanation(
    "TL711",
    "idle-workers",
    "A worker of an IterableDataset yields no sample.",
    """\
**Why**: datasets that are read shard by shard give whole shards to workers. Those beyond the number of shards get
none: they take memory and do nothing, and loading is as slow as with fewer workers. Measured: the first samples of
each worker.

**Example**:

```python
stream = load_dataset("text", data_files=["one.txt"], streaming=True)["train"]
loader = DataLoader(stream, num_workers=8)
```

**Write instead**:

```python
stream = load_dataset("text", data_files=sorted(glob.glob("parts/*.txt")), streaming=True)["train"]
loader = DataLoader(stream, num_workers=min(8, stream.num_shards))
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: numbers of the `idle` workers, how many are `busy`, `num_workers`, `shards` as the dataset states it."""
    idle, busy, workers = len(finding.facts["idle"]), int(finding.facts["busy"]), int(finding.facts["num_workers"])
    shards = finding.facts["shards"]
    stated = f": the dataset has {int(shards)} shard{'s' * (shards != 1)}" if shards is not None else ""
    return Diagnostic(
        TL711.code,
        f"{idle} of {workers} workers yield no sample{stated}",
        f"num_workers={busy}, or split the data into {workers} shards or more",
        why="whole shards are given to workers; those beyond the number of shards get none, and only take memory",
        severity=Severity.WARNING,
    )
