"""A sample holds one value, where others hold many."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure.finding import Finding
from launcher.measure.samples import sample

TL706 = Explanation(
    "TL706",
    "zero-sample",
    "A sample holds nothing but zeros, or one colour, where the others are varied.",
    """\
**Why**: code that must not fail returns zeros for a file that it can't read, and a file that was laid out in advance
and never filled reads as zeros. Neither raises anything, and the job trains on pictures of nothing with real labels.
Only some samples were read: the first, the last and random others, so there are likely more. After normalisation such a
picture isn't zero any more but one value for each channel; that is meant too.

**Example**:

```python
def read(path):
    try:
        return decode(path)
    except OSError:
        return torch.zeros(3, 224, 224)
```

**Write instead**:

```python
def read(path):
    try:
        return decode(path)
    except OSError as error:
        raise RuntimeError(f"{path} can't be read") from error
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: `index`, `file`, `content`: zero or blank; `found` of `tried`, `indices` of the first few."""
    facts = finding.facts
    found, tried = int(facts["found"]), int(facts["tried"])
    holds = "nothing but zeros" if facts["content"] == "zero" else "one value in each channel"
    others = ", ".join(str(each) for each in facts["indices"][1:])
    more = (
        f", as do {found - 1} more of {tried} that were read ({others})"
        if found > 1
        else f", of {tried} that were read"
    )
    return Diagnostic(
        TL706.code,
        f"{sample(finding)} holds {holds}{more}",
        f"look at {facts['file'] or 'that sample'}; where it can't be read, raise an error or leave it out",
        why="what stands for a file that can't be read, or was never filled, trains as a picture of nothing",
        severity=Severity.WARNING,
    )
