"""Reading a sample raises an exception."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation
from launcher.measure.finding import Finding
from launcher.measure.samples import sample
from launcher.units import counted

TL704 = Explanation(
    "TL704",
    "sample-exception",
    "Reading some sample of the dataset raises an exception, which will end the job when its turn comes.",
    """\
**Why**: one sample that can't be read ends the whole job, perhaps hours later, when the sampler comes to it. torch
builds a worker's exception again in the main process from one string; of a class that takes other arguments (urllib's
HTTPError, botocore's) the job shows a `TypeError` or a bare text in its place. Here the sample was read without that,
so the error is the true one. Only some samples were read: the first, the last and random others.

**Example**:

```python
class Images(Dataset):
    def __getitem__(self, index):
        return decode(self.paths[index])  # a truncated file raises
```

**Write instead**:

```python
class Images(Dataset):
    def __init__(self, paths):
        self.paths = [path for path in paths if is_whole(path)]

    def __getitem__(self, index):
        return decode(self.paths[index])
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: `index`, `file`, the `error`, its `message`, `at` and `function`, `raised_again`, `found` of `tried`."""
    facts = finding.facts
    text, error, found = str(facts["message"]), str(facts["error"]), int(facts["found"])
    return Diagnostic(
        TL704.code,
        f"{sample(finding)} raises {error}{': ' if text else ''}{text} at {facts['at']} in {facts['function']}"
        + (f", as do {found - 1} more of {counted(int(facts['tried']), 'sample')} that were read" if found > 1 else ""),
        f"correct what {facts['at']} does with {facts['file'] or 'that sample'}, or leave it out of the dataset",
        why="one such sample ends the whole job when its turn comes"
        if facts["raised_again"]
        else f"torch can't build {error} again from a worker's, so the job would show another error in its place",
    )
