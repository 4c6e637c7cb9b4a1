"""The script's collate_fn takes most of a batch's time."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure.finding import Finding

TL721 = Explanation(
    "TL721",
    "slow-collate",
    "The script's own collate_fn takes most of the time that a batch needs, and training waits for it.",
    """\
**Why**: a worker reads the samples of a batch, then collate_fn makes one batch of them. Loops over samples in Python,
conversions to lists and copies of copies there can cost more than reading. Measured: both times of each batch, and
how long the script waited for its batches.

**Example**:

```python
def collate(samples):
    return torch.tensor([image.tolist() for image, _ in samples]), torch.tensor([label for _, label in samples])
```

**Write instead**:

```python
def collate(samples):
    return torch.stack([image for image, _ in samples]), torch.tensor([label for _, label in samples])
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: `collate_seconds` of the `fetch_seconds` of a batch, the share of the script's time that is `waiting`."""
    collate, fetch = float(finding.facts["collate_seconds"]) * 1000, float(finding.facts["fetch_seconds"]) * 1000
    waiting, name = float(finding.facts["waiting"]), str(finding.facts["collate_fn"])
    return Diagnostic(
        TL721.code,
        f"{name} takes {collate:.3g} of the {fetch:.3g} ms of a batch, and the script waits {waiting:.0%} of its time",
        "make tensors in __getitem__, and only stack them in collate_fn: torch.stack(images)",
        why="collate_fn runs for each batch in the worker that read it, after its last sample",
        severity=Severity.WARNING,
    )
