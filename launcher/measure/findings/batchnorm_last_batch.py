"""The last batch of an epoch is one sample, which BatchNorm refuses."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation
from launcher.measure.finding import Finding

TL716 = Explanation(
    "TL716",
    "batchnorm-last-batch-ahead",
    "The last batch of an epoch has one sample, and a BatchNorm layer in training mode refuses one value per channel.",
    """\
**Why**: in training mode BatchNorm takes mean and variance over the batch. One value for each channel has no
variance, so torch raises `ValueError: Expected more than 1 value per channel when training`, at the end of the first
epoch, after hours perhaps. Measured: the shapes that the model's layers got, and how many samples the loader's epoch
has.

**Example**:

```python
loader = DataLoader(dataset, batch_size=16, shuffle=True)  # 65 samples
```

**Write instead**:

```python
loader = DataLoader(dataset, batch_size=16, shuffle=True, drop_last=True)
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: classes of `layers`, `batch_size`, `samples` of an epoch."""
    layers, size, samples = (
        ", ".join(finding.facts["layers"]),
        int(finding.facts["batch_size"]),
        finding.facts["samples"],
    )
    return Diagnostic(
        TL716.code,
        f"the last batch of {int(samples)} samples in batches of {size} is 1, and {layers} gets 1 value per channel",
        "drop_last=True in the DataLoader that trains",
        why="in training mode torch raises `Expected more than 1 value per channel when training`",
    )
