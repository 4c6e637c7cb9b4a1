"""A good part of the batches is padding."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure.finding import Finding

TL722 = Explanation(
    "TL722",
    "padding-waste",
    "30 % or more of what the batches hold is padding.",
    """\
**Why**: a batch is as long as its longest sample, or as a length that was chosen for all. What is padded is collated,
goes through /dev/shm and to the GPU, and is computed like data. Measured: batches against the samples that they were
made of; where the dataset itself pads, by the one value that rows end with and that stands nowhere else.

**Example**:

```python
loader = DataLoader(texts, batch_size=64, shuffle=True, collate_fn=pad)
```

**Write instead**:

```python
by_length = sorted(range(len(texts)), key=lambda index: len(texts[index]))
batches = [by_length[at : at + 64] for at in range(0, len(by_length), 64)]
random.shuffle(batches)
loader = DataLoader(texts, batch_sampler=batches, collate_fn=pad)
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: the `tensor`, the `share` that is padding, its `longest` row, the `mean` without, who pads (`by`)."""
    share, longest, mean = float(finding.facts["share"]), int(finding.facts["longest"]), float(finding.facts["mean"])
    where = f"batch{finding.facts['tensor']}"
    alike = "put samples of like length into one batch (a batch_sampler over indices sorted by length)"
    own = f"pad in collate_fn to the longest of the batch, not in the dataset to {longest}; then {alike}"
    return Diagnostic(
        TL722.code,
        f"{share:.0%} of {where} is padding: rows of {longest} hold {mean:.0f} on average",
        own if finding.facts["by"] == "dataset" else alike,
        why="padding is loaded, copied and computed like data",
        severity=Severity.WARNING,
    )
