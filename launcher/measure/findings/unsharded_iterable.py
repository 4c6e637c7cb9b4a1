"""All workers of a stream yield the same samples."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure.finding import Finding

TL710 = Explanation(
    "TL710",
    "unsharded-iterable",
    "The workers of an IterableDataset all yield the same samples.",
    """\
**Why**: each worker iterates a copy of the dataset. Where `__iter__` doesn't take its share by `get_worker_info()`, N
workers give every sample N times: an epoch is N times as long, and an evaluation counts each sample N times. No error
says so. Measured: hashes of what two workers yield; where samples are augmented at random, those of a part that isn't,
as a label or a name.

**Example**:

```python
class Lines(IterableDataset):
    def __iter__(self):
        yield from open(self.path)


loader = DataLoader(Lines(), num_workers=4)
```

**Write instead**:

```python
class Lines(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        start, step = (worker.id, worker.num_workers) if worker else (0, 1)
        yield from itertools.islice(open(self.path), start, None, step)


loader = DataLoader(Lines(), num_workers=4)
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: `samples` of each worker, whether the stream `ended`, the script's `num_workers`.

    `part`: the position of what is equal in each sample, None where all of it is.
    """
    samples, workers = int(finding.facts["samples"]), int(finding.facts["num_workers"])
    part = f"all {samples} samples" if finding.facts["ended"] else f"the same first {samples} samples"
    if finding.facts.get("part") is not None:
        part = f"the same {samples} samples, differently augmented ([{int(finding.facts['part'])}] of each is equal)"
    who = (
        f"each of the {workers} workers yields" if workers > 1 else "with num_workers above 1, each worker would yield"
    )
    return Diagnostic(
        TL710.code,
        f"{who} {part} of the dataset",
        "in __iter__, take a worker's share: itertools.islice(samples, info.id, None, info.num_workers), where info is "
        "torch.utils.data.get_worker_info()",
        why="each worker iterates a copy of the dataset, so N workers give every sample N times",
        severity=Severity.ERROR if workers > 1 else Severity.WARNING,
    )
